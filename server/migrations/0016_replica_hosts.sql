-- Up Migration

-- Where each replica runs, and how wrong its clock is. A replica of an older version leaves these columns unset.
alter table replicas
  add column host text,
  add column clock_ahead_ms double precision;
