-- Up Migration

-- Fencing tokens are microseconds of the database's clock (server/decisions/0025-tokens-from-the-clock.md). No token of a record
-- that was swept may be above this floor, also if the clock is set back. 0: no replica has raised it yet.
alter table installation
  add column token_floor bigint not null default 0;

-- Replicas of the version before draw their tokens from the sequence. It steps by one, so that it stays behind the clock, and each
-- heartbeat of a newer replica raises it.
alter sequence fencing_tokens increment by 1;

-- Raises the sequence to 10 s ahead of the clock, which is three heartbeats. So a key that replicas of both versions claim gets rising
-- tokens, also after its row was swept. It runs as the owner, because the service's role may draw from sequences and not set them.
create function raise_fencing_tokens() returns void
language sql volatile security definer set search_path = public, pg_temp as $$
  select setval('fencing_tokens', c.us + 10000000)
    from fencing_tokens, (select (date_part('epoch', clock_timestamp()) * 1000000)::bigint as us) c
   where last_value < c.us + 5000000
$$;

-- Gives the installation another id, and raises the floor of fencing tokens, and every sequence of ids beyond those that it can have
-- given out before the database went back. False: the id is not the known one any more, so that another call was quicker, and nothing
-- was changed. It runs as the owner, because the service's role may draw from sequences and not set them; and a role that cannot read the
-- id changes nothing by calling it.
--
-- Ids rise beyond those of the rows, too, for a restore that left sequences out; those of tenants are 32 bits wide: 100,000 more leave
-- room for 20,000 restores.
create or replace function renew_installation(known_id uuid, token_floor bigint) returns boolean
language plpgsql security definer set search_path = public, pg_temp as $$
begin
  update installation i
     set id = gen_random_uuid(), made_in = database_identity(pg_current_xact_id()::xid),
         token_floor = greatest(i.token_floor, renew_installation.token_floor, (date_part('epoch', clock_timestamp()) * 1000000)::bigint)
   where i.id = known_id;
  if not found then
    return false;
  end if;
  perform setval('tenants_id_seq',
                 greatest(last_value, (select max(id) from tenants), (select max(tenant_id) from records)) + 100000)
     from tenants_id_seq;
  perform setval('record_jobs_id_seq', greatest(last_value, (select max(id) from record_jobs)) + 1000000000)
     from record_jobs_id_seq;
  perform setval('audit_events_id_seq', greatest(last_value, (select max(id) from audit_events)) + 1000000000)
     from audit_events_id_seq;
  return true;
end $$;
