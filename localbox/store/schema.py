"""The tables. A change of them is a further entry of MIGRATIONS; the file knows how many it has seen."""

from __future__ import annotations

import sqlite3

_FIRST = """
CREATE TABLE boxes (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,       -- creation order: what listings sort and page by
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('provisioning', 'cloning', 'ready', 'archiving', 'archived', 'error')),
    size TEXT NOT NULL,
    ttl_seconds INTEGER,                         -- null: no automatic stop
    archive_after REAL,
    env TEXT NOT NULL,                           -- JSON; secret, never given out again
    no_env INTEGER NOT NULL,
    setup_script TEXT,
    setup_status TEXT CHECK (setup_status IN ('pending', 'running', 'done', 'failed')),
    setup_error TEXT,
    setup_process_id INTEGER,
    subdomain TEXT,
    error TEXT,
    uid INTEGER UNIQUE,                          -- its own while it has files
    origin_id TEXT,                              -- the box it was forked from
    copied INTEGER NOT NULL DEFAULT 1,           -- a fork's files are all there
    supervisor TEXT,                             -- JSON of SupervisorRecord, while up
    saved_at REAL,                               -- when its files were last known complete: the last stop
    pruned_at REAL,                              -- its files were deleted; it cannot be resumed any more
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL,
    deleted_at REAL,
    removed_at REAL                              -- a deleted or pruned box's processes and files are gone
);
CREATE INDEX boxes_listed ON boxes (state, seq) WHERE deleted_at IS NULL;
CREATE INDEX boxes_timed ON boxes (archive_after) WHERE deleted_at IS NULL AND archive_after IS NOT NULL;
CREATE INDEX boxes_with_files ON boxes (updated_at) WHERE removed_at IS NULL;
CREATE INDEX boxes_leaving ON boxes (seq) WHERE removed_at IS NULL AND (deleted_at IS NOT NULL OR pruned_at IS NOT NULL);
CREATE INDEX boxes_deleted ON boxes (deleted_at) WHERE deleted_at IS NOT NULL;
CREATE INDEX boxes_origin ON boxes (origin_id) WHERE copied = 0;
CREATE UNIQUE INDEX boxes_subdomain ON boxes (subdomain) WHERE subdomain IS NOT NULL AND deleted_at IS NULL;

CREATE TABLE stretches (                         -- the meter: one row for each time a box was up
    box_id TEXT NOT NULL REFERENCES boxes (id) ON DELETE CASCADE,
    started_at REAL NOT NULL,
    ended_at REAL CHECK (ended_at >= started_at),
    multiplier REAL NOT NULL
);
CREATE INDEX stretches_box ON stretches (box_id);
CREATE UNIQUE INDEX stretches_open ON stretches (box_id) WHERE ended_at IS NULL;

CREATE TABLE idempotency_keys (
    key TEXT PRIMARY KEY,
    fingerprint TEXT NOT NULL,                   -- of the operation and its parsed body
    box_id TEXT NOT NULL,
    created_at REAL NOT NULL
);

CREATE TABLE starts (at REAL NOT NULL);          -- creates, forks and resumes of the last day
CREATE INDEX starts_at ON starts (at);

CREATE TABLE deletions (
    id TEXT PRIMARY KEY,
    box_id TEXT NOT NULL UNIQUE,
    status TEXT NOT NULL CHECK (status IN ('pending', 'processing', 'blocked', 'completed')),
    attempts INTEGER NOT NULL DEFAULT 0,
    requested_at REAL NOT NULL,
    completed_at REAL
);

CREATE TABLE webhooks (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    name TEXT,
    url TEXT NOT NULL UNIQUE,
    events TEXT NOT NULL,                        -- JSON list, in the words of the first dialect
    dialect TEXT NOT NULL,                       -- in whose words its deliveries are written
    secret TEXT NOT NULL,
    created_at REAL NOT NULL,
    updated_at REAL NOT NULL
);

CREATE TABLE deliveries (                        -- what is still to be delivered
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    event_id TEXT NOT NULL,
    webhook_id TEXT NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
    event TEXT NOT NULL,
    body TEXT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    next_at REAL NOT NULL
);
CREATE INDEX deliveries_waiting ON deliveries (webhook_id, next_at);

CREATE TABLE pulse (only INTEGER PRIMARY KEY CHECK (only = 1), at REAL NOT NULL);  -- when boxes were last seen up
INSERT INTO pulse VALUES (1, 0);
"""

MIGRATIONS = (_FIRST,)


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the file to this version. Raises RuntimeError for a file that a later version has written."""
    seen = connection.execute("PRAGMA user_version").fetchone()[0]
    if seen > len(MIGRATIONS):
        raise RuntimeError("the state folder was written by a later version of localbox")
    for version, script in enumerate(MIGRATIONS[seen:], start=seen + 1):
        connection.executescript(f"BEGIN IMMEDIATE; {script} PRAGMA user_version = {version}; COMMIT;")
