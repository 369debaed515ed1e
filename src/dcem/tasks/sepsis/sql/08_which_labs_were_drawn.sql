-- Which laboratory values belong to the first ICU day?
--
-- From 6 hours before admission to 24 hours after it. Laboratory rows carry no stay, only the
-- admission. A specimen type has no number; everything else needs one above zero.
SELECT
    s.icustay_id, l.charttime, l.itemid, l.value,
    CASE
        WHEN l.valuenum <= 0 THEN NULL
        WHEN l.itemid = 51265 AND l.valuenum > 10000 THEN NULL           -- platelets
        WHEN l.itemid IN (50885, 50912) AND l.valuenum > 150 THEN NULL   -- bilirubin, creatinine
        WHEN l.itemid = 50816 AND l.valuenum NOT BETWEEN 20 AND 100 THEN NULL  -- FiO2, percent
        WHEN l.itemid = 50817 AND l.valuenum > 100 THEN NULL             -- oxygen saturation
        WHEN l.itemid = 50815 AND l.valuenum > 70 THEN NULL              -- oxygen flow
        WHEN l.itemid = 50821 AND l.valuenum > 800 THEN NULL             -- PO2
        ELSE l.valuenum
    END AS valuenum
FROM mimic.labevents AS l
JOIN built.stays AS s ON s.subject_id = l.subject_id AND s.hadm_id = l.hadm_id
WHERE s.metavision
  AND l.charttime BETWEEN s.intime - INTERVAL 6 HOUR AND s.intime + INTERVAL 24 HOUR
  AND l.itemid IN (51265, 50885, 50912,
                   50800, 50801, 50803, 50804, 50811, 50813, 50815, 50816, 50817, 50818, 50820,
                   50821)
ORDER BY s.icustay_id, l.charttime, l.itemid
