-- Which ICU stays are there, and how old is each patient?
--
-- One row per ICU stay with what the later questions need of its admission and patient.
-- Ages are taken from whole days: the birth dates of patients over 89 lie about 300 years back,
-- more than a nanosecond interval can hold. Those ages are unknown; 91.4, their median, is exported.
WITH aged AS (
    SELECT
        i.icustay_id, i.hadm_id, i.subject_id, i.dbsource, i.intime, i.outtime,
        a.ethnicity, a.has_chartevents_data,
        round((a.admittime::DATE - p.dob::DATE) / 365.242, 4) AS age
    FROM mimic.icustays AS i
    JOIN mimic.admissions AS a ON a.hadm_id = i.hadm_id
    JOIN mimic.patients AS p ON p.subject_id = i.subject_id
)
SELECT
    *,
    CASE WHEN age > 89 THEN 91.4 ELSE age END AS exported_age,
    coalesce(dbsource = 'metavision', false) AS metavision,
    row_number() OVER (PARTITION BY subject_id ORDER BY intime NULLS LAST, icustay_id) AS stay_number
FROM aged
ORDER BY icustay_id
