CREATE TABLE benchmarks (name TEXT PRIMARY KEY, about TEXT, metrics TEXT);
CREATE TABLE cells (
    id TEXT PRIMARY KEY,          -- hash of the configuration
    kind TEXT NOT NULL,           -- cells of one kind can train as one fleet
    config TEXT NOT NULL,         -- JSON: task, method, seed
    status TEXT NOT NULL DEFAULT 'pending'
        CHECK (status IN ('pending', 'running', 'done', 'failed')),
    owner TEXT,                   -- the worker that runs or ran it
    fleet TEXT,                   -- the cells it trained with, or will go on with
    fleet_place INTEGER,
    attempts INTEGER NOT NULL DEFAULT 0,
    error TEXT,
    metrics TEXT,                 -- JSON: name -> value
    about TEXT,                   -- JSON: seconds, memory, device, size of its fleet
    finished REAL                 -- seconds since 1970
);
CREATE INDEX cells_by_status ON cells (status, kind);
CREATE INDEX cells_by_fleet ON cells (fleet);
CREATE TABLE plan (
    benchmark TEXT NOT NULL REFERENCES benchmarks (name),
    label TEXT NOT NULL,
    cell TEXT NOT NULL REFERENCES cells (id),
    position INTEGER NOT NULL,
    PRIMARY KEY (benchmark, label, cell)
);
CREATE TABLE workers (
    id TEXT PRIMARY KEY, machine TEXT, pid INTEGER, birth TEXT, lease REAL, started REAL,
    device TEXT, versions TEXT
);
CREATE TABLE speeds (kind TEXT, device TEXT, cells INTEGER, seconds REAL, whole INTEGER);
CREATE INDEX speeds_by_kind ON speeds (kind, device);
