-- Up Migration

-- By which a replica finds the most overdue count of a tenant's records.
create index tenant_totals_count_due_at on tenant_totals (count_due_at);
drop index tenants_counted;

-- Finds the tenants that have ambiguous records, without reading all namespaces of each.
create index namespaces_that_hold on namespaces (tenant_id) where on_lease_expiry = 'HOLD';

-- A tenant with a quota of records or bytes has a row, whichever statement sets the quota. The row stays until its next count.
create function add_tenant_totals() returns trigger language plpgsql as $$
begin
  insert into tenant_totals (tenant_id) values (new.id) on conflict do nothing;
  return null;
end $$;
create trigger tenants_quota_set after insert or update of quota_live_records, quota_stored_bytes on tenants
  for each row when (new.quota_live_records is not null or new.quota_stored_bytes is not null)
  execute function add_tenant_totals();

insert into tenant_totals (tenant_id)
select id from tenants where quota_live_records is not null or quota_stored_bytes is not null
on conflict do nothing;
