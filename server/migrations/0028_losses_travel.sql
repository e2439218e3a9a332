-- Up Migration

-- When records of the tenant's were lost the last time, in an installation that it has moved from (server/decisions/0024-late-keys.md).
alter table tenants
  add column records_lost_at timestamptz;

-- The floor of fencing tokens that the installation had when it got its id. A replica that has read a higher one before knows that the
-- database went back, also if a replica that did not know gave the id. Null: the loss is stored, or there was no earlier id.
alter table installation
  add column floor_found bigint;

-- A replica of the version before takes the 256 numbers from the one that it draws, one for each operation of a statement.
alter sequence fencing_tokens increment by 256;

-- As before, and keeps the floor that it found. The sequence of tenants' ids is raised by raise_tenant_ids.
create or replace function renew_installation(known_id uuid, token_floor bigint) returns boolean
language plpgsql security definer set search_path = public, pg_temp as $$
begin
  update installation i
     set id = gen_random_uuid(), made_in = database_identity(pg_current_xact_id()::xid), floor_found = i.token_floor,
         token_floor = greatest(i.token_floor, renew_installation.token_floor, (date_part('epoch', clock_timestamp()) * 1000000)::bigint)
   where i.id = known_id;
  if not found then
    return false;
  end if;
  perform setval('record_jobs_id_seq', greatest(last_value, (select max(id) from record_jobs)) + 1000000000)
     from record_jobs_id_seq;
  perform setval('audit_events_id_seq', greatest(last_value, (select max(id) from audit_events)) + 1000000000)
     from audit_events_id_seq;
  return true;
end $$;

-- Raises the sequence of tenants' ids beyond those that it can have given out before the database went back. No rollback takes that
-- back, and the ids are 32 bits wide: the last statement of a renewal, which has then little left that can fail.
create function raise_tenant_ids() returns void
language sql volatile security definer set search_path = public, pg_temp as $$
  select setval('tenants_id_seq', least(
           greatest(last_value, (select max(id) from tenants), (select max(tenant_id) from records)) + 100000, 2147483647))
    from tenants_id_seq
$$;
