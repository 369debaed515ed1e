-- Which stays are excluded, and for which reasons?
--
-- Every flag is computed on its own; a stay is in the cohort if none is set. No suspicion of
-- infection is not an exclusion. The suspicion rule moves the early and late flags.
WITH first_service AS (
    SELECT hadm_id, curr_service
    FROM mimic.services
    QUALIFY row_number() OVER (PARTITION BY hadm_id ORDER BY transfertime, curr_service) = 1
),
suspected AS (
    SELECT
        icustay_id,
        CASE getvariable('suspicion')
            WHEN 'corr24' THEN corr24 WHEN 'v2018' THEN v2018 WHEN 'head2019' THEN head2019
        END AS suspicion_time
    FROM built.suspicion
),
flags AS (
    SELECT
        s.icustay_id,
        u.suspicion_time,
        coalesce(s.age <= 16, false) AS exclusion_nonadult,
        s.stay_number > 1 AS exclusion_secondarystay,
        coalesce(f.curr_service IN ('CSURG', 'VSURG', 'TSURG'), false) AS exclusion_csurg,
        NOT s.metavision AS exclusion_carevue,
        coalesce(u.suspicion_time < s.intime - INTERVAL 24 HOUR, false)
            AS exclusion_early_suspicion,
        coalesce(u.suspicion_time > s.intime + INTERVAL 24 HOUR, false)
            AS exclusion_late_suspicion,
        coalesce(s.has_chartevents_data = 0, false) OR s.intime IS NULL OR s.outtime IS NULL
            AS exclusion_bad_data
    FROM built.stays AS s
    JOIN suspected AS u ON u.icustay_id = s.icustay_id
    LEFT JOIN first_service AS f ON f.hadm_id = s.hadm_id
)
SELECT
    *,
    NOT (exclusion_nonadult OR exclusion_secondarystay OR exclusion_csurg OR exclusion_carevue
         OR exclusion_early_suspicion OR exclusion_late_suspicion OR exclusion_bad_data)
        AS in_cohort
FROM flags
ORDER BY icustay_id
