-- Up Migration

-- How long after a record's first claim an expired lease is taken over (policy.proto); null: under RECLAIM without a limit.
alter table tenants add column reclaim_within_s int check (reclaim_within_s > 0);
alter table namespaces add column reclaim_within_s int check (reclaim_within_s > 0);
-- Stamped at the claim, with `holds_on_lease_expiry`; 0 or null: under HOLD. `ambiguous_from` stays the end of the lease,
-- because the end of this time is not indexed.
alter table records add column reclaim_within_s int;

-- Finds the tenants that have ambiguous records.
drop index namespaces_that_hold;
create index namespaces_that_hold on namespaces (tenant_id) where on_lease_expiry = 'HOLD' or reclaim_within_s is not null;
