-- When was the first culture (any specimen) taken within a day of admission to the ICU?
--
-- It replaces a suspicion time known only as a date, and says who was cultured at all.
SELECT s.icustay_id, min(coalesce(m.charttime, m.chartdate)) AS blood_culture_time
FROM built.stays AS s
LEFT JOIN mimic.microbiologyevents AS m
  ON m.hadm_id = s.hadm_id
 AND (m.charttime BETWEEN s.intime - INTERVAL 24 HOUR AND s.intime + INTERVAL 24 HOUR
      OR m.chartdate BETWEEN date_trunc('day', s.intime - INTERVAL 24 HOUR)
                         AND s.intime + INTERVAL 24 HOUR)
GROUP BY s.icustay_id
ORDER BY s.icustay_id
