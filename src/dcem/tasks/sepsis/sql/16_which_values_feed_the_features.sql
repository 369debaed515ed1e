-- Which charted values of the first three hours feed the features, and are they plausible?
--
-- Published features take every value. The verdict says what the cleaned ones leave out:
--   error          the nurse marked the entry as wrong
--   other quantity alarm limits, ventilator settings, other vessels than a systemic artery
--   implausible    outside what a living patient can show
--   no number      text only
WITH early AS (
    SELECT c.icustay_id, c.charttime, c.row_id, c.itemid, i.measure, c.valuenum, c.error
    FROM built.charted AS c
    JOIN built.items AS i ON i.itemid = c.itemid
    JOIN built.first_charttimes AS f ON f.icustay_id = c.icustay_id
    WHERE c.charttime <= f.first_charttime + INTERVAL 3 HOUR
      AND i.measure IN ('lactate', 'heart_rate', 'any_systolic', 'systolic', 'wbc', 'neutrophils',
                        'glucose', 'bun', 'respiratory_rate', 'albumin', 'creatinine',
                        'fahrenheit', 'celsius')
)
SELECT
    icustay_id, charttime, row_id, itemid,
    CASE WHEN measure IN ('fahrenheit', 'celsius') THEN 'temperature' ELSE measure END AS measure,
    CASE WHEN measure = 'celsius' THEN 1.8 * valuenum + 32 ELSE valuenum END AS value,
    CASE
        WHEN error = 1 THEN 'error'
        WHEN measure = 'heart_rate' AND itemid <> 220045 THEN 'other quantity'
        WHEN measure = 'any_systolic'
             AND itemid NOT IN (SELECT itemid FROM built.items WHERE measure = 'systolic')
             THEN 'other quantity'
        WHEN measure = 'respiratory_rate' AND itemid NOT IN (220210, 224690) THEN 'other quantity'
        WHEN measure = 'celsius' AND itemid = 226329 THEN 'other quantity'
        WHEN valuenum IS NULL THEN 'no number'
        WHEN measure = 'heart_rate' AND NOT (valuenum > 0 AND valuenum < 300) THEN 'implausible'
        WHEN measure IN ('any_systolic', 'systolic') AND NOT (valuenum > 0 AND valuenum < 400)
            THEN 'implausible'
        WHEN measure = 'respiratory_rate' AND NOT (valuenum > 0 AND valuenum < 70)
            THEN 'implausible'
        WHEN measure = 'fahrenheit' AND NOT (valuenum > 70 AND valuenum < 120) THEN 'implausible'
        WHEN measure = 'celsius' AND NOT (valuenum > 10 AND valuenum < 50) THEN 'implausible'
        WHEN NOT valuenum > 0 THEN 'implausible'
        ELSE 'plausible'
    END AS verdict
FROM early
ORDER BY icustay_id, charttime, row_id, measure
