-- What is the SOFA score of the first ICU day?
--
-- Six organs, 0 to 4 each; an organ nobody measured has no score and counts as 0 in the sum.
-- MetaVision stays only: the others chart other items and are excluded anyway, so their score is
-- absent rather than wrong. Kept as published: a ventilated patient with PaO2/FiO2 of 200 or more
-- scores 0, an unventilated one below 200 at most 2.
WITH pressure AS (
    SELECT c.icustay_id, min(c.valuenum) AS lowest_mean_pressure
    FROM built.charted AS c
    JOIN built.stays AS s ON s.icustay_id = c.icustay_id
    WHERE c.itemid IN (220052, 220181, 225312)
      AND c.valuenum > 0 AND c.valuenum < 300
      AND c.error IS DISTINCT FROM 1
      AND c.charttime BETWEEN s.intime AND s.intime + INTERVAL 24 HOUR
    GROUP BY c.icustay_id
),
labs AS (
    SELECT
        icustay_id,
        min(valuenum) FILTER (WHERE itemid = 51265) AS platelets,
        max(valuenum) FILTER (WHERE itemid = 50885) AS bilirubin,
        max(valuenum) FILTER (WHERE itemid = 50912) AS creatinine
    FROM built.labs
    GROUP BY icustay_id
),
gases AS (
    SELECT
        icustay_id,
        min(pao2_fio2) FILTER (WHERE ventilated) AS pf_ventilated,
        min(pao2_fio2) FILTER (WHERE NOT ventilated) AS pf_breathing
    FROM built.gases
    GROUP BY icustay_id
),
scored AS (
    SELECT
        s.icustay_id,
        CASE
            WHEN pf_ventilated < 100 THEN 4
            WHEN pf_ventilated < 200 THEN 3
            WHEN pf_breathing < 300 THEN 2
            WHEN pf_breathing < 400 THEN 1
            WHEN coalesce(pf_ventilated, pf_breathing) IS NOT NULL THEN 0
        END AS respiration,
        CASE
            WHEN platelets < 20 THEN 4
            WHEN platelets < 50 THEN 3
            WHEN platelets < 100 THEN 2
            WHEN platelets < 150 THEN 1
            WHEN platelets IS NOT NULL THEN 0
        END AS coagulation,
        CASE
            WHEN bilirubin >= 12 THEN 4
            WHEN bilirubin >= 6 THEN 3
            WHEN bilirubin >= 2 THEN 2
            WHEN bilirubin >= 1.2 THEN 1
            WHEN bilirubin IS NOT NULL THEN 0
        END AS liver,
        CASE
            WHEN dopamine > 15 OR epinephrine > 0.1 OR norepinephrine > 0.1 THEN 4
            WHEN dopamine > 5 OR epinephrine <= 0.1 OR norepinephrine <= 0.1 THEN 3
            WHEN dopamine > 0 OR dobutamine > 0 THEN 2
            WHEN lowest_mean_pressure < 70 THEN 1
            WHEN coalesce(lowest_mean_pressure, dopamine, dobutamine, epinephrine, norepinephrine)
                 IS NOT NULL THEN 0
        END AS cardiovascular,
        CASE
            WHEN lowest_gcs < 6 THEN 4
            WHEN lowest_gcs < 10 THEN 3
            WHEN lowest_gcs < 13 THEN 2
            WHEN lowest_gcs < 15 THEN 1
            WHEN lowest_gcs IS NOT NULL THEN 0
        END AS cns,
        CASE
            WHEN creatinine >= 5 OR urine < 200 THEN 4
            WHEN creatinine >= 3.5 OR urine < 500 THEN 3
            WHEN creatinine >= 2 THEN 2
            WHEN creatinine >= 1.2 THEN 1
            WHEN coalesce(creatinine, urine) IS NOT NULL THEN 0
        END AS renal
    FROM built.stays AS s
    LEFT JOIN pressure AS p ON p.icustay_id = s.icustay_id
    LEFT JOIN labs AS l ON l.icustay_id = s.icustay_id
    LEFT JOIN gases AS g ON g.icustay_id = s.icustay_id
    LEFT JOIN built.gcs AS c ON c.icustay_id = s.icustay_id
    LEFT JOIN built.vasopressors AS v ON v.icustay_id = s.icustay_id
    LEFT JOIN built.urine AS u ON u.icustay_id = s.icustay_id
    WHERE s.metavision
)
SELECT
    icustay_id,
    coalesce(respiration, 0) + coalesce(coagulation, 0) + coalesce(liver, 0)
        + coalesce(cardiovascular, 0) + coalesce(cns, 0) + coalesce(renal, 0) AS sofa,
    respiration, coagulation, liver, cardiovascular, cns, renal
FROM scored
ORDER BY icustay_id
