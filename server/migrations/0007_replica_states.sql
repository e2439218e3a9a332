-- Up Migration

-- What each replica tells of itself at its heartbeat. A replica of an older version leaves these columns unset.
alter table replicas
  add column degraded text[] not null default '{}',
  add column calls_in_flight integer,
  add column operations_per_second double precision,
  add column connections integer,
  add column pool_size integer,
  add column pool_busy integer,
  add column pool_awaited integer;
