-- Who is in the study?
--
-- In the cohort; without sepsis, or with onset more than 3 and at most 11 hours after the first
-- charting; white or Black; with at least one feature. One row per ICU stay, in or out, with the
-- first reason that puts it out.
WITH described AS (
    SELECT
        s.icustay_id, s.hadm_id, s.subject_id, s.exported_age AS age,
        e.* EXCLUDE (icustay_id),
        o.* EXCLUDE (icustay_id),
        p.* EXCLUDE (icustay_id),
        f.* EXCLUDE (icustay_id),
        CASE
            WHEN s.ethnicity IN ('WHITE', 'WHITE - RUSSIAN', 'WHITE - OTHER EUROPEAN',
                                 'WHITE - BRAZILIAN', 'WHITE - EASTERN EUROPEAN') THEN 1
            WHEN s.ethnicity IN ('BLACK/AFRICAN AMERICAN', 'BLACK/CAPE VERDEAN', 'BLACK/HAITIAN',
                                 'BLACK/AFRICAN', 'CARIBBEAN ISLAND') THEN 0
        END AS a
    FROM built.stays AS s
    JOIN built.exclusions AS e ON e.icustay_id = s.icustay_id
    JOIN built.sepsis AS p ON p.icustay_id = s.icustay_id
    JOIN built.features AS f ON f.icustay_id = s.icustay_id
    LEFT JOIN built.sofa AS o ON o.icustay_id = s.icustay_id
)
SELECT
    *,
    CASE
        WHEN exclusion_nonadult THEN 'nonadult'
        WHEN exclusion_secondarystay THEN 'secondarystay'
        WHEN exclusion_csurg THEN 'csurg'
        WHEN exclusion_carevue THEN 'carevue'
        WHEN exclusion_early_suspicion THEN 'early_suspicion'
        WHEN exclusion_late_suspicion THEN 'late_suspicion'
        WHEN exclusion_bad_data THEN 'bad_data'
        WHEN sepsis3 AND NOT coalesce(onset_hours > 3 AND onset_hours <= 11, false)
            THEN 'onset_outside_window'
        WHEN a IS NULL THEN 'neither_white_nor_black'
        WHEN coalesce(max_lactic_acid, first_shock_index_age, last_shock_index_age, max_wbc,
                      delta_lactic_acid, max_neuts, max_glucose, max_bun, max_rr, last_albumin,
                      min_sbp, max_creatinine, max_temp_f) IS NULL THEN 'no_features'
    END AS left_out_because
FROM described
ORDER BY icustay_id
