-- Up Migration

-- Calls beyond a quota, by reason. A replica of an older version counts none.
alter table usage_hours
  add column refused_by_rate bigint not null default 0,
  add column refused_by_concurrency bigint not null default 0,
  add column refused_by_records bigint not null default 0,
  add column refused_by_bytes bigint not null default 0,
  add column would_be_refused bigint not null default 0;

-- What each replica counted in the last minute, and the minutes of the last hour, so that any replica can add them up
-- (server/decisions/0027-what-happens-now.md). Unlogged: they cost no write-ahead log, and are worth nothing after a crash.
create unlogged table usage_now (
  replica_id uuid primary key,
  valid_until timestamptz not null,
  -- How long the counts took.
  seconds float8 not null,
  -- By tenant, then namespace.
  counts jsonb not null
);
create unlogged table usage_minutes (
  minute timestamptz not null,
  replica_id uuid not null,
  -- By tenant.
  counts jsonb not null,
  primary key (minute, replica_id)
);
