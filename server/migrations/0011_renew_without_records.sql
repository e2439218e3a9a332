-- Up Migration

-- As before, but without a look at the records: on Citus they are on nodes that may be away, and replicas, which renew the
-- installation before anything else, would serve no key meanwhile. 100,000 more ids cover the tenants of a loss.
create or replace function raise_tenant_ids() returns void
language sql volatile security definer set search_path = public, pg_temp as $$
  select setval('tenants_id_seq', least(greatest(last_value, (select max(id) from tenants)) + 100000, 2147483647))
    from tenants_id_seq
$$;
