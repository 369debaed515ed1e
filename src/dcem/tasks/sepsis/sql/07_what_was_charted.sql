-- What was charted of these items, and when was anything charted first?
--
-- CHARTEVENTS is the one large table (330 million rows) and a gzipped file can only be read from
-- front to back, so it is read once. Rows stream out of this query; those marked `kept` are
-- stored, and the earliest time of each stay is taken over all of them, wrong entries included.
SELECT
    icustay_id,
    charttime,
    kept,
    CASE WHEN kept THEN row_id END AS row_id,
    CASE WHEN kept THEN itemid END AS itemid,
    CASE WHEN kept THEN value END AS value,
    CASE WHEN kept THEN valuenum END AS valuenum,
    CASE WHEN kept THEN error END AS error
FROM (
    SELECT
        *,
        itemid IN (SELECT itemid FROM built.items)
            AND icustay_id IN (SELECT icustay_id FROM built.stays WHERE metavision) AS kept
    FROM mimic.chartevents
)
