"""Floor 2: how things are kept. Logs, work and records, one transaction."""
