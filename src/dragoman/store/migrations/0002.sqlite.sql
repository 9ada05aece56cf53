-- The trace in which a task began, and the audit log: who called what, on which task, with what outcome.
ALTER TABLE logs ADD COLUMN trace TEXT NOT NULL DEFAULT '';

CREATE TABLE audit (
  position INTEGER PRIMARY KEY,
  at REAL NOT NULL,
  trace TEXT NOT NULL,
  task TEXT NOT NULL,
  caller TEXT NOT NULL,
  agent TEXT NOT NULL,
  body BLOB NOT NULL
) STRICT;
CREATE INDEX audit_of_trace ON audit (trace) WHERE trace <> '';
CREATE INDEX audit_of_task ON audit (task) WHERE task <> '';
