-- What are the 13 features?
--
-- First and last follow (charttime, row_id). The shock index is heart rate over systolic pressure
-- charted at the same time, every pair of rows counting, times the exported age. The last albumin
-- skips entries without a number; the change of lactate does not, unless cleaned.
WITH chosen AS (
    SELECT *
    FROM built.measurements
    WHERE getvariable('features') = 'published' OR verdict = 'plausible'
),
summaries AS (
    SELECT
        icustay_id,
        max(value) FILTER (WHERE measure = 'lactate') AS max_lactic_acid,
        last(value ORDER BY charttime, row_id) FILTER (WHERE measure = 'lactate')
            - first(value ORDER BY charttime, row_id) FILTER (WHERE measure = 'lactate')
            AS delta_lactic_acid,
        max(value) FILTER (WHERE measure = 'wbc') AS max_wbc,
        max(value) FILTER (WHERE measure = 'neutrophils') AS max_neuts,
        max(value) FILTER (WHERE measure = 'glucose') AS max_glucose,
        max(value) FILTER (WHERE measure = 'bun') AS max_bun,
        max(value) FILTER (WHERE measure = 'respiratory_rate') AS max_rr,
        last(value ORDER BY charttime, row_id)
            FILTER (WHERE measure = 'albumin' AND value IS NOT NULL) AS last_albumin,
        min(value) FILTER (WHERE measure = 'systolic') AS min_sbp,
        max(value) FILTER (WHERE measure = 'creatinine') AS max_creatinine,
        max(value) FILTER (WHERE measure = 'temperature') AS max_temp_f
    FROM chosen
    GROUP BY icustay_id
),
pairs AS (
    SELECT
        p.icustay_id, p.charttime, p.row_id AS pressure_row, h.row_id AS heart_row,
        h.value / nullif(p.value, 0) AS shock_index
    FROM chosen AS p
    JOIN chosen AS h ON h.icustay_id = p.icustay_id AND h.charttime = p.charttime
    WHERE p.measure = 'any_systolic' AND h.measure = 'heart_rate'
),
shocks AS (
    SELECT
        icustay_id,
        first(shock_index ORDER BY charttime, pressure_row, heart_row) AS first_shock_index,
        last(shock_index ORDER BY charttime, pressure_row, heart_row) AS last_shock_index
    FROM pairs
    WHERE shock_index IS NOT NULL
    GROUP BY icustay_id
)
SELECT
    s.icustay_id,
    m.max_lactic_acid,
    k.first_shock_index * s.exported_age AS first_shock_index_age,
    k.last_shock_index * s.exported_age AS last_shock_index_age,
    m.max_wbc,
    m.delta_lactic_acid,
    m.max_neuts,
    m.max_glucose,
    m.max_bun,
    m.max_rr,
    m.last_albumin,
    m.min_sbp,
    m.max_creatinine,
    m.max_temp_f
FROM built.stays AS s
LEFT JOIN summaries AS m ON m.icustay_id = s.icustay_id
LEFT JOIN shocks AS k ON k.icustay_id = s.icustay_id
ORDER BY s.icustay_id
