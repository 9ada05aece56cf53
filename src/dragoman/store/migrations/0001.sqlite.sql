-- One number line (meta "reserved") gives ids to logs, appends and work: none is ever used twice.
CREATE TABLE meta (
  name TEXT PRIMARY KEY,
  value ANY
) STRICT, WITHOUT ROWID;

CREATE TABLE logs (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  kind TEXT NOT NULL,
  owner TEXT NOT NULL,
  tenant TEXT NOT NULL,
  agent TEXT NOT NULL,
  context TEXT NOT NULL,
  state TEXT NOT NULL,
  at REAL NOT NULL,
  hidden INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  append_id TEXT NOT NULL
) STRICT;

-- A caller's list: the page is read from the index in order, the count without touching a row.
CREATE INDEX logs_of_caller ON logs (tenant, owner, at, id, agent, state) WHERE kind = 'task' AND hidden = 0;
CREATE INDEX logs_of_context ON logs (context) WHERE kind = 'task' AND context <> '';
-- The operator's list, the sweep, and how many tasks are active.
CREATE INDEX logs_by_age ON logs (at, id, state) WHERE kind = 'task';

-- One row per append: `body` is the event, or a msgpack array of them when `count` > 1.
CREATE TABLE appends (
  position INTEGER PRIMARY KEY,
  log INTEGER NOT NULL,
  last INTEGER NOT NULL,
  count INTEGER NOT NULL,
  body BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX appends_of_log ON appends (log, last);

CREATE TABLE snapshots (
  log INTEGER PRIMARY KEY,
  seq INTEGER NOT NULL,
  body BLOB NOT NULL
) STRICT;

CREATE TABLE work (
  id INTEGER PRIMARY KEY,
  kind TEXT NOT NULL,
  topic TEXT NOT NULL,
  log TEXT NOT NULL,
  due REAL NOT NULL,
  node TEXT,
  epoch INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  name TEXT,
  body BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX work_by_name ON work (name) WHERE name IS NOT NULL;
-- Only what nobody holds is looked for: work leased as it is put costs no index.
CREATE INDEX work_by_topic ON work (kind, topic, due) WHERE node IS NULL;
CREATE INDEX work_by_due ON work (due) WHERE node IS NULL;

CREATE TABLE records (
  kind TEXT NOT NULL,
  key TEXT NOT NULL,
  log TEXT NOT NULL,
  body BLOB NOT NULL,
  PRIMARY KEY (kind, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX records_of_log ON records (log) WHERE log <> '';
