-- How many rows does each table have, CHARTEVENTS aside?
--
-- Reading every file to its end also finds the one that was cut short before hours are spent.
-- CHARTEVENTS is counted while it is read.
SELECT 'icustays' AS name, count(*) AS rows FROM mimic.icustays
UNION ALL SELECT 'admissions', count(*) FROM mimic.admissions
UNION ALL SELECT 'patients', count(*) FROM mimic.patients
UNION ALL SELECT 'services', count(*) FROM mimic.services
UNION ALL SELECT 'prescriptions', count(*) FROM mimic.prescriptions
UNION ALL SELECT 'microbiologyevents', count(*) FROM mimic.microbiologyevents
UNION ALL SELECT 'labevents', count(*) FROM mimic.labevents
UNION ALL SELECT 'inputevents_mv', count(*) FROM mimic.inputevents_mv
UNION ALL SELECT 'outputevents', count(*) FROM mimic.outputevents
UNION ALL SELECT 'procedureevents_mv', count(*) FROM mimic.procedureevents_mv
UNION ALL SELECT 'd_items', count(*) FROM mimic.d_items
