-- Which blood gases are arterial, and what is their PaO2/FiO2?
--
-- The specimen is often unrecorded, so a logistic model guesses it: a gas counts if it says ART or
-- if the model is more than 75 % sure, whatever the specimen says. A value that is missing enters
-- the model as the mean m with a correction b.
WITH gases AS (
    SELECT
        icustay_id, charttime,
        max(value) FILTER (WHERE itemid = 50800) AS specimen,
        max(valuenum) FILTER (WHERE itemid = 50801) AS aado2,
        max(valuenum) FILTER (WHERE itemid = 50803) AS bicarbonate,
        max(valuenum) FILTER (WHERE itemid = 50804) AS total_co2,
        max(valuenum) FILTER (WHERE itemid = 50811) AS hemoglobin,
        max(valuenum) FILTER (WHERE itemid = 50813) AS lactate,
        max(valuenum) FILTER (WHERE itemid = 50815) AS o2_flow,
        max(valuenum) FILTER (WHERE itemid = 50816) AS lab_fio2,
        max(valuenum) FILTER (WHERE itemid = 50817) AS so2,
        max(valuenum) FILTER (WHERE itemid = 50818) AS pco2,
        max(valuenum) FILTER (WHERE itemid = 50820) AS ph,
        max(valuenum) FILTER (WHERE itemid = 50821) AS po2
    FROM built.labs
    WHERE itemid BETWEEN 50800 AND 50821
    GROUP BY icustay_id, charttime
    HAVING po2 IS NOT NULL
),
saturations AS (  -- wrong entries are not removed here, as published
    SELECT
        c.icustay_id, c.charttime,
        max(CASE WHEN c.valuenum > 0 AND c.valuenum <= 100 THEN c.valuenum END) AS spo2
    FROM built.charted AS c
    WHERE c.itemid = 220277
    GROUP BY c.icustay_id, c.charttime
),
oxygen AS (
    SELECT
        c.icustay_id, c.charttime,
        max(CASE
            WHEN c.valuenum > 0 AND c.valuenum <= 1 THEN 100 * c.valuenum
            WHEN c.valuenum >= 21 AND c.valuenum <= 100 THEN c.valuenum
        END) AS fio2
    FROM built.charted AS c
    WHERE c.itemid = 223835 AND c.error IS DISTINCT FROM 1
    GROUP BY c.icustay_id, c.charttime
),
attached AS (  -- the most recent entry counts even if its value was not usable
    SELECT
        g.*,
        CASE WHEN s.charttime >= g.charttime - INTERVAL 2 HOUR THEN s.spo2 END AS spo2,
        CASE WHEN o.charttime >= g.charttime - INTERVAL 4 HOUR THEN o.fio2 END AS charted_fio2
    FROM gases AS g
    ASOF LEFT JOIN saturations AS s ON s.icustay_id = g.icustay_id AND s.charttime <= g.charttime
    ASOF LEFT JOIN oxygen AS o ON o.icustay_id = g.icustay_id AND o.charttime <= g.charttime
),
guessed AS (
    SELECT
        *,
        1 / (1 + exp(-(
            -0.02544 + 0.04598 * po2
            + coalesce(-0.15356 * spo2, -0.15356 * 97.49420 + 0.13429)
            + coalesce(0.00621 * charted_fio2, 0.00621 * 51.49550 - 0.24958)
            + coalesce(0.10559 * hemoglobin, 0.10559 * 10.32307 + 0.05954)
            + coalesce(0.13251 * so2, 0.13251 * 93.66539 - 0.23172)
            + coalesce(-0.01511 * pco2, -0.01511 * 42.08866 - 0.01630)
            + coalesce(0.01480 * lab_fio2, 0.01480 * 63.97836 - 0.31142)
            + coalesce(-0.00200 * aado2, -0.00200 * 442.21186 - 0.01328)
            + coalesce(-0.03220 * bicarbonate, -0.03220 * 22.96894 - 0.06535)
            + coalesce(0.05384 * total_co2, 0.05384 * 24.72632 - 0.01405)
            + coalesce(0.08202 * lactate, 0.08202 * 3.06436 + 0.06038)
            + coalesce(0.10956 * ph, 0.10956 * 7.36233 - 0.00617)
            + coalesce(0.00848 * o2_flow, 0.00848 * 7.59362 - 0.35803)
        ))) AS probability_arterial
    FROM attached
)
SELECT
    g.icustay_id, g.charttime, g.specimen, g.probability_arterial,
    100 * g.po2 / coalesce(g.lab_fio2, g.charted_fio2) AS pao2_fio2,
    EXISTS (
        SELECT 1 FROM built.ventilation AS v
        WHERE v.icustay_id = g.icustay_id AND g.charttime BETWEEN v.starttime AND v.endtime
    ) AS ventilated
FROM guessed AS g
WHERE g.specimen = 'ART' OR g.probability_arterial > 0.75
ORDER BY g.icustay_id, g.charttime
