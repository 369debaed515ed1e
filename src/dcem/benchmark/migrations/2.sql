-- Every result carries a checksum of all that is exported of it; of older ones it is taken now.
ALTER TABLE cells ADD COLUMN checksum TEXT;
UPDATE cells SET checksum = checksum_of(
    id, config, metrics, about, finished, (SELECT versions FROM workers WHERE workers.id = owner)
) WHERE status = 'done';
