-- Up Migration

-- How far each replica saw the database's clock move against its machine's uptime, so that a replica that starts
-- afterwards knows. A replica of an older version leaves the column unset.
alter table replicas
  add column clock_moved_ms double precision;
