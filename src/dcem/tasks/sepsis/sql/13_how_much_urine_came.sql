-- How much urine came on the first day, in millilitres?
--
-- Irrigant that went in (227488) is subtracted. No scaling for stays shorter than a day. A stay
-- without a single row has no value, which is not the same as none.
SELECT
    s.icustay_id,
    sum(CASE WHEN o.itemid = 227488 THEN -o.value ELSE o.value END) AS urine
FROM mimic.outputevents AS o
JOIN built.stays AS s ON s.icustay_id = o.icustay_id
WHERE s.metavision
  AND o.itemid IN (226557, 226558, 226559, 226560, 226561, 226563, 226564, 226565, 226567, 226584,
                   227489, 227488)
  AND o.charttime BETWEEN s.intime AND s.intime + INTERVAL 24 HOUR
GROUP BY s.icustay_id
ORDER BY s.icustay_id
