-- Who has sepsis by the Sepsis-3 definition, and since when?
--
-- Suspected infection with a SOFA score of 2 or more. Onset is the time of suspicion; where that
-- is known as a date alone (exactly midnight) and the first culture is of that date, the culture's
-- time. Hours count from the first time anything was charted, which may precede admission.
WITH flagged AS (
    SELECT
        e.icustay_id, e.suspicion_time, c.blood_culture_time, f.first_charttime, o.sofa,
        e.suspicion_time IS NOT NULL AND o.sofa >= 2 AS sepsis3
    FROM built.exclusions AS e
    JOIN built.cultures AS c ON c.icustay_id = e.icustay_id
    LEFT JOIN built.sofa AS o ON o.icustay_id = e.icustay_id
    LEFT JOIN built.first_charttimes AS f ON f.icustay_id = e.icustay_id
),
onsets AS (
    SELECT
        *,
        CASE
            WHEN NOT sepsis3 THEN NULL
            WHEN suspicion_time = date_trunc('day', suspicion_time)
                 AND blood_culture_time::DATE = suspicion_time::DATE THEN blood_culture_time
            ELSE suspicion_time
        END AS onset_time
    FROM flagged
)
SELECT
    icustay_id, first_charttime, blood_culture_time,
    CASE WHEN sofa IS NOT NULL THEN sepsis3 END AS sepsis3,
    CASE WHEN sofa IS NOT NULL THEN onset_time END AS onset_time,
    CASE WHEN sofa IS NOT NULL
         THEN date_diff('microsecond', first_charttime, onset_time) / 3600e6 END AS onset_hours
FROM onsets
ORDER BY icustay_id
