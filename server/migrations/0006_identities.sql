-- Up Migration

-- Names the tenant in everything that can outlive the database's memory of it. A restore or a promotion takes sequences back,
-- so that an id may be given out twice; a random number is not.
alter table tenants add column uid uuid not null default gen_random_uuid();

-- Which database the installation's id was made in, as database_identity() says; null: no replica has served it yet. A copy of
-- the database, a restored one and a promoted standby say otherwise of themselves.
alter table installation add column made_in text;

-- Tells this database from every other one that holds the same rows: the cluster and its timeline, which a promotion and a
-- recovery to a point in time change; the database and the table, which a restored dump has of its own; and the transaction
-- that wrote the row of `installation`, which differs where only rows were restored. It runs as the owner, because the
-- service's role may not be allowed to read all of that.
create function database_identity(row_written_by xid) returns text
language plpgsql stable security definer set search_path = public, pg_temp as $$
declare
  cluster text;
begin
  begin
    select format('%s/%s', system_identifier, left(pg_walfile_name(pg_current_wal_lsn()), 8))
      into cluster
      from pg_control_system();
  exception
    -- Managed services refuse it, each with an error of its own.
    when others then cluster := 'unreadable';
  end;
  return format('%s/%s/%s/%s', cluster, (select oid from pg_database where datname = current_database()),
                'installation'::regclass::oid, row_written_by);
end $$;

-- Gives the installation another id, and raises every sequence beyond what it can have given out before the database went back.
-- False: the id is not the known one any more, so that another call was quicker, and nothing was changed. It runs as the owner,
-- because the service's role may draw from sequences and not set them; and a role that cannot read the id changes nothing by calling it.
--
-- Fencing tokens rise by 2^42, which is what 10,000 statements a second draw in five days, and 2^53 holds 2,000 times; and
-- beyond the floor. Ids rise beyond those of the rows, too, for a restore that left sequences out; those of tenants are 32 bits
-- wide: 100,000 more leave room for 20,000 restores.
create function renew_installation(known_id uuid, token_floor bigint) returns boolean
language plpgsql security definer set search_path = public, pg_temp as $$
begin
  update installation
     set id = gen_random_uuid(), made_in = database_identity(pg_current_xact_id()::xid)
   where id = known_id;
  if not found then
    return false;
  end if;
  perform setval('fencing_tokens', greatest(last_value, token_floor) + 4398046511104) from fencing_tokens;
  perform setval('tenants_id_seq',
                 greatest(last_value, (select max(id) from tenants), (select max(tenant_id) from records)) + 100000)
     from tenants_id_seq;
  perform setval('record_jobs_id_seq', greatest(last_value, (select max(id) from record_jobs)) + 1000000000)
     from record_jobs_id_seq;
  perform setval('audit_events_id_seq', greatest(last_value, (select max(id) from audit_events)) + 1000000000)
     from audit_events_id_seq;
  return true;
end $$;
