-- Up Migration

-- When the database went back in time the last time, so that records may be lost: keys that were created before it and have no record
-- begin no life where late keys are refused (server/decisions/0024-late-keys.md). Null: it never did. A replica of an older version
-- does not read it.
alter table installation
  add column records_lost_at timestamptz;
