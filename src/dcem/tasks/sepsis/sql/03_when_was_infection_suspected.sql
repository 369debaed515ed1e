-- When was infection first suspected, by each of the three published rules?
--
-- An antibiotic and a culture of the same admission, close in time. Antibiotic times are dates
-- (midnight), cultures are of any specimen and sometimes dates too.
--   v2018     the culture's time, before or after: a culture is required
--   head2019  the antibiotic's time if no culture precedes: no culture is needed at all (a slip)
--   corr24    the antibiotic's time only if a culture follows within 24 hours: Sepsis-3 as meant
WITH antibiotics AS (
    SELECT DISTINCT p.hadm_id, p.startdate AS given
    FROM mimic.prescriptions AS p
    JOIN built.antibiotics AS a ON a.drug = p.drug
    WHERE p.startdate IS NOT NULL
),
cultures AS (
    SELECT DISTINCT hadm_id, chartdate, charttime
    FROM mimic.microbiologyevents
),
preceding AS (
    SELECT a.hadm_id, a.given, min(coalesce(c.charttime, c.chartdate)) AS cultured
    FROM antibiotics AS a
    JOIN cultures AS c ON c.hadm_id = a.hadm_id
    WHERE (c.charttime < a.given AND a.given <= c.charttime + INTERVAL 72 HOUR)
       OR (c.charttime IS NULL AND c.chartdate < a.given
           AND a.given < c.chartdate + INTERVAL 96 HOUR)
    GROUP BY a.hadm_id, a.given
),
following AS (  -- a culture known by its date alone never follows: the published null check
    SELECT a.hadm_id, a.given, min(c.charttime) AS cultured
    FROM antibiotics AS a
    JOIN cultures AS c ON c.hadm_id = a.hadm_id
    WHERE a.given <= c.charttime AND c.charttime < a.given + INTERVAL 24 HOUR
    GROUP BY a.hadm_id, a.given
),
by_admission AS (
    SELECT
        a.hadm_id,
        min(coalesce(p.cultured, f.cultured)) AS v2018,
        min(coalesce(p.cultured, a.given)) AS head2019,
        min(coalesce(p.cultured, CASE WHEN f.cultured IS NOT NULL THEN a.given END)) AS corr24
    FROM antibiotics AS a
    LEFT JOIN preceding AS p ON p.hadm_id = a.hadm_id AND p.given = a.given
    LEFT JOIN following AS f ON f.hadm_id = a.hadm_id AND f.given = a.given
    GROUP BY a.hadm_id
)
SELECT s.icustay_id, b.v2018, b.head2019, b.corr24
FROM built.stays AS s
LEFT JOIN by_admission AS b ON b.hadm_id = s.hadm_id
ORDER BY s.icustay_id
