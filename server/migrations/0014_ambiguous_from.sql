-- Up Migration

-- From when a record is ambiguous unless its claim settles before: the end of its lease, for a record in progress under HOLD. Null
-- for all others, so that a completion under RECLAIM still touches no index. Postgres computes it, so that replicas that do
-- not know the column store it, too.
--
-- Adding it rewrites the table once, under a lock: deploy/upgrade.md.
alter table records add column ambiguous_from timestamptz
  generated always as (case when state = 1 /* in progress */ and holds_on_lease_expiry then lease_expires_at end) stored;

-- Lists and counts a tenant's ambiguous records, the oldest first.
create index records_ambiguous_from on records (tenant_id, ambiguous_from, namespace, key)
  where ambiguous_from is not null;
