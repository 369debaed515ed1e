-- When was each patient on a ventilator?
--
-- Spells over the whole stay, found by walking through the rows that show a ventilator, an oxygen
-- device or an extubation. A spell ends where the next begins:
--   * after an extubation;
--   * at oxygen therapy without a ventilator;
--   * after more than 8 hours without a ventilator row.
WITH charted AS (
    SELECT
        c.icustay_id,
        c.charttime,
        bool_or(i.measure = 'ventilator' OR (i.measure = 'ventilator_type' AND c.value <> 'Other'))
            AS vent,
        -- some values carry a trailing blank in one release and not in the other
        bool_or(i.measure = 'oxygen_device' AND rtrim(c.value) IN (
            'Nasal cannula', 'Face tent', 'Aerosol-cool', 'Trach mask', 'High flow neb',
            'Non-rebreather', 'Venti mask', 'Medium conc mask', 'T-piece',
            'High flow nasal cannula', 'Ultrasonic neb', 'Vapomist')) AS oxygen
    FROM built.charted AS c
    JOIN built.items AS i ON i.itemid = c.itemid
    WHERE i.measure IN ('ventilator', 'ventilator_type', 'oxygen_device')
      AND c.value IS NOT NULL
      AND c.error IS DISTINCT FROM 1
    GROUP BY c.icustay_id, c.charttime
),
walk AS (
    SELECT icustay_id, charttime, vent, oxygen, false AS extubated, false AS by_patient
    FROM charted
    UNION
    SELECT p.icustay_id, p.starttime, false, false, true, p.itemid = 225468
    FROM mimic.procedureevents_mv AS p
    JOIN built.stays AS s ON s.icustay_id = p.icustay_id AND s.metavision
    WHERE p.itemid IN (227194, 225468, 225477)
),
looked_back AS (  -- at one time, a ventilator row comes before an extubation
    SELECT
        *,
        lag(extubated) OVER (
            PARTITION BY icustay_id, vent OR extubated ORDER BY charttime, extubated
        ) AS after_extubation,
        lag(charttime) OVER (PARTITION BY icustay_id, vent ORDER BY charttime) AS previous_vent
    FROM walk
),
marked AS (
    SELECT
        *,
        ((vent OR extubated) AND coalesce(after_extubation, false))
        OR (oxygen AND NOT vent)
        OR (vent AND coalesce(charttime - previous_vent > INTERVAL 8 HOUR, false)) AS begins
    FROM looked_back
),
numbered AS (  -- rows of one time share the count after all of them
    SELECT
        *,
        sum(begins::INT) OVER (
            PARTITION BY icustay_id ORDER BY charttime
            RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS spell
    FROM marked
)
SELECT icustay_id, min(charttime) AS starttime, max(charttime) AS endtime
FROM numbered
WHERE vent OR extubated
GROUP BY icustay_id, spell
HAVING bool_or(vent) AND min(charttime) < max(charttime)
ORDER BY icustay_id, starttime
