-- At which highest rate did each vasopressor start on the first day?
--
-- Micrograms per kilogram and minute; the unit is not checked, as published. Rewritten orders
-- were never given. Vasopressin and phenylephrine do not count towards the SOFA score.
SELECT
    s.icustay_id,
    max(m.rate) FILTER (WHERE m.itemid = 221906) AS norepinephrine,
    max(m.rate) FILTER (WHERE m.itemid = 221289) AS epinephrine,
    max(m.rate) FILTER (WHERE m.itemid = 221662) AS dopamine,
    max(m.rate) FILTER (WHERE m.itemid = 221653) AS dobutamine
FROM mimic.inputevents_mv AS m
JOIN built.stays AS s ON s.icustay_id = m.icustay_id
WHERE s.metavision
  AND m.itemid IN (221906, 221289, 221662, 221653)
  AND m.starttime BETWEEN s.intime AND s.intime + INTERVAL 24 HOUR
  AND m.statusdescription <> 'Rewritten'
GROUP BY s.icustay_id
ORDER BY s.icustay_id
