-- What was the lowest Glasgow coma score of the first day?
--
-- The parts are charted at different times, so a missing part is taken from the row just before,
-- if that is less than 6 hours old, else it counts as normal. Intubated patients cannot speak:
-- their verbal part is recorded as 0 and the whole score counts as normal.
WITH parts AS (
    SELECT
        c.icustay_id, c.charttime,
        max(CASE WHEN c.itemid <> 223900 THEN NULL
                 WHEN c.value = 'No Response-ETT' THEN 0 ELSE c.valuenum END) AS verbal,
        max(CASE WHEN c.itemid = 223901 THEN c.valuenum END) AS motor,
        max(CASE WHEN c.itemid = 220739 THEN c.valuenum END) AS eyes
    FROM built.charted AS c
    JOIN built.stays AS s ON s.icustay_id = c.icustay_id
    WHERE c.itemid IN (223900, 223901, 220739)
      AND c.error IS DISTINCT FROM 1
      AND c.charttime BETWEEN s.intime AND s.intime + INTERVAL 24 HOUR
    GROUP BY c.icustay_id, c.charttime
),
ordered AS (
    SELECT
        *,
        lag(charttime) OVER stay AS previous_time,
        lag(verbal) OVER stay AS verbal_before,
        lag(motor) OVER stay AS motor_before,
        lag(eyes) OVER stay AS eyes_before
    FROM parts
    WINDOW stay AS (PARTITION BY icustay_id ORDER BY charttime)
),
recent AS (
    SELECT
        icustay_id, charttime, verbal, motor, eyes,
        CASE WHEN fresh THEN verbal_before END AS verbal_before,
        CASE WHEN fresh THEN motor_before END AS motor_before,
        CASE WHEN fresh THEN eyes_before END AS eyes_before
    FROM (SELECT *, charttime - previous_time < INTERVAL 6 HOUR AS fresh FROM ordered)
)
SELECT
    icustay_id,
    min(CASE
        WHEN verbal = 0 OR (verbal IS NULL AND verbal_before = 0) THEN 15
        WHEN verbal_before = 0
            THEN coalesce(motor, 6) + coalesce(verbal, 5) + coalesce(eyes, 4)
        ELSE coalesce(motor, motor_before, 6) + coalesce(verbal, verbal_before, 5)
             + coalesce(eyes, eyes_before, 4)
    END) AS lowest_gcs
FROM recent
GROUP BY icustay_id
ORDER BY icustay_id
