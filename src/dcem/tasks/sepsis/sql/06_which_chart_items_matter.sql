-- Which charted items does each measurement come from?
--
-- The features name their items by a pattern on the item's label, as published; the SOFA score by
-- number. MetaVision items only: the two charting systems share no item.
WITH patterns(measure, pattern) AS (
    VALUES
        ('lactate', 'lactic'),
        ('heart_rate', 'heart rate'),            -- alarm limits too
        ('any_systolic', 'systolic'),            -- pulmonary artery and assist devices too
        ('systolic', '(blood pressure|bp) systolic'),
        ('wbc', '^wbc$'),
        ('neutrophils', 'neuts'),                -- percent, not a count
        ('glucose', '^glucose (finger stick|\([\w\s]+\)$)'),
        ('bun', '^bun$'),
        ('respiratory_rate', '^RR$|respiratory rate'),
        ('albumin', '^albumin$'),
        ('creatinine', '^creatinine$'),
        ('fahrenheit', 'temperature F'),
        ('celsius', 'temperature C')
),
by_number(measure, items) AS (
    VALUES
        ('gcs_verbal', [223900]),
        ('gcs_motor', [223901]),
        ('gcs_eyes', [220739]),
        ('mean_pressure', [220052, 220181, 225312]),
        ('spo2', [220277]),
        ('fio2', [223835]),
        ('ventilator', [223849, 224687, 224684, 224685, 224686, 224695, 224696, 224697, 224746,
                        224747, 226873, 224738, 224419, 224750, 227187, 224705, 224706, 224707,
                        224709, 220339, 224700, 224701, 224702]),
        ('ventilator_type', [223848]),
        ('oxygen_device', [226732])
)
SELECT d.itemid, p.measure
FROM patterns AS p
JOIN mimic.d_items AS d ON d.dbsource = 'metavision' AND regexp_matches(d.label, p.pattern, 'i')
UNION ALL
SELECT unnest(items), measure FROM by_number
ORDER BY measure, itemid
