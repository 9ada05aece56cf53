-- name: log_by_name
SELECT id, name, kind, owner, tenant, agent, context, state, at, hidden, seq, append_id, trace FROM logs WHERE name = ?

-- name: begin_log
INSERT INTO logs (id, name, kind, owner, tenant, agent, context, state, at, hidden, seq, append_id, trace)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: change_log
UPDATE logs SET state = ?, at = ?, hidden = ?, seq = ?, append_id = ? WHERE id = ?

-- name: grow_log
UPDATE logs SET seq = ?, append_id = ? WHERE id = ?

-- name: delete_log
DELETE FROM logs WHERE id = ?

-- name: append
INSERT INTO appends (position, log, last, count, body) VALUES (?, ?, ?, ?, ?)

-- name: delete_appends
DELETE FROM appends WHERE log = ?

-- name: read
SELECT a.last, a.count, a.body FROM logs l JOIN appends a ON a.log = l.id
WHERE l.name = ? AND a.last > ? ORDER BY a.last LIMIT ?

-- name: feed
SELECT a.position, l.name, a.last FROM appends a JOIN logs l ON l.id = a.log
WHERE a.position > ? ORDER BY a.position LIMIT ?

-- name: keep_snapshot
INSERT INTO snapshots (log, seq, body) VALUES (?, ?, ?)
ON CONFLICT (log) DO UPDATE SET seq = excluded.seq, body = excluded.body

-- name: delete_snapshot
DELETE FROM snapshots WHERE log = ?

-- name: snapshot
SELECT s.seq, s.body FROM logs l JOIN snapshots s ON s.log = l.id WHERE l.name = ?

-- name: put_work
INSERT INTO work (id, kind, topic, log, due, node, epoch, attempts, name, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: put_named_work
INSERT INTO work (id, kind, topic, log, due, node, epoch, attempts, name, body) VALUES (?, ?, ?, ?, ?, NULL, 0, 0, ?, ?)
ON CONFLICT (name) WHERE name IS NOT NULL DO UPDATE SET due = excluded.due

-- name: work_by_name
SELECT id FROM work WHERE name = ?

-- name: end_work
DELETE FROM work WHERE id = ?

-- name: drop_work
DELETE FROM work WHERE name = ?

-- name: free_work
UPDATE work SET node = NULL, due = ? WHERE id = ?

-- name: free_all_work
UPDATE work SET node = NULL, due = 0 WHERE node IS NOT NULL

-- name: attempt_work
UPDATE work SET attempts = 1 WHERE id = ?

-- name: due_work
SELECT id, topic, log, body, epoch, attempts, name FROM work
WHERE node IS NULL AND kind = ? AND topic IN (SELECT value FROM json_each(?)) AND due <= ? ORDER BY due, id LIMIT ?

-- name: hold_work
UPDATE work SET node = ?, epoch = ?, attempts = ? WHERE id = ?

-- name: next_due
SELECT due FROM work WHERE node IS NULL ORDER BY due LIMIT 1

-- name: keep_record
INSERT INTO records (kind, key, log, body) VALUES (?, ?, ?, ?)
ON CONFLICT (kind, key) DO UPDATE SET log = excluded.log, body = excluded.body

-- name: record
SELECT log, body FROM records WHERE kind = ? AND key = ?

-- name: delete_records
DELETE FROM records WHERE log = ? AND log <> ''

-- name: active
SELECT count(*) FROM logs WHERE kind = 'task' AND state NOT IN ('completed', 'failed', 'canceled', 'rejected')

-- name: active_of_owners
SELECT tenant, owner, count(*) FROM logs
WHERE kind = 'task' AND state NOT IN ('completed', 'failed', 'canceled', 'rejected') GROUP BY tenant, owner

-- name: owner_of_context
SELECT tenant, owner FROM logs INDEXED BY logs_of_context WHERE kind = 'task' AND context = ? AND context <> '' LIMIT 1

-- name: keep_audit
INSERT INTO audit (position, at, trace, task, caller, agent, body) VALUES (?, ?, ?, ?, ?, ?, ?)

-- name: audited
SELECT position, body FROM audit

-- name: sweep_audit
DELETE FROM audit WHERE position IN (SELECT position FROM audit WHERE at < ? ORDER BY position LIMIT ?)

-- name: over
SELECT name FROM logs
WHERE kind = 'task' AND at < ? AND state IN ('completed', 'failed', 'canceled', 'rejected')
  AND name NOT IN (SELECT log FROM work)
ORDER BY at LIMIT ?

-- name: logs_between
SELECT name FROM logs WHERE name >= ? AND name < ?

-- name: meta
SELECT value FROM meta WHERE name = ?

-- name: keep_meta
INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value

-- name: page
SELECT id, name, kind, owner, tenant, agent, context, state, at, hidden, seq, append_id, trace FROM logs
