-- Up Migration

alter table tenants
  -- How many namespaces the tenant may declare; null: domain/quotas.ts.
  add column quota_declared_namespaces int check (quota_declared_namespaces > 0),
  -- Raised by every change of the tenant's namespaces; 0: it never declared one. Replicas load the policy of a namespace
  -- on demand, and keep it for as long as this is what it was.
  add column namespaces_version int not null default 0;

update tenants t set namespaces_version = 1
 where exists (select from namespaces n where n.tenant_id = t.id);

-- A trigger, so that a replica of an earlier version raises it, too.
create function raise_namespaces_version() returns trigger language plpgsql as $$
begin
  update tenants set namespaces_version = namespaces_version + 1
   where id = any (array(select distinct tenant_id from changed));
  return null;
end $$;
create trigger namespaces_inserted after insert on namespaces
  referencing new table as changed for each statement execute function raise_namespaces_version();
create trigger namespaces_updated after update on namespaces
  referencing new table as changed for each statement execute function raise_namespaces_version();
create trigger namespaces_deleted after delete on namespaces
  referencing old table as changed for each statement execute function raise_namespaces_version();

-- By which workers take tenants in turns.
create index record_jobs_unfinished_of_tenant on record_jobs (tenant_id, id) where finished_at is null;

-- By which rows are pruned that are older than their retention.
create index record_jobs_finished on record_jobs (finished_at) where finished_at is not null;
-- In UTC, so that it serves no other statement: those that read a tenant's hours go by the primary key.
create index usage_hours_hour on usage_hours (timezone('utc', hour));

-- Audit events still can't be changed, but those older than 30 days, the shortest retention that can be configured, can be
-- deleted.
drop trigger audit_events_are_final on audit_events;
create trigger audit_events_are_final before update or truncate on audit_events
  for each statement execute function audit_events_are_final();
create function audit_events_stay() returns trigger language plpgsql as $$
begin
  if old.at > now() - interval '30 days' then
    raise exception 'audit events are final for 30 days';
  end if;
  return old;
end $$;
create trigger audit_events_stay before delete on audit_events
  for each row execute function audit_events_stay();

-- Deletes up to so many of the oldest events, and answers how many. It runs as the owner of the table, because the
-- service's role may not delete events (deploy/README.md); only roles that write events may call it.
create function prune_audit_events(older_than interval, max_rows int) returns int
  language plpgsql security definer as $$
declare
  pruned int;
begin
  if not has_table_privilege(session_user, 'audit_events', 'insert') then
    raise insufficient_privilege using message = 'only a role that may write audit events may prune them';
  end if;
  delete from audit_events where ctid = any (array(
    select e.ctid from audit_events e
     where e.at < now() - greatest(older_than, interval '30 days')
     order by e.at, e.id
     limit max_rows
       for update skip locked));
  get diagnostics pruned = row_count;
  return pruned;
end $$;
-- No caller's temporary table may stand before the schema's.
do $$ begin
  execute format(
    'alter function prune_audit_events(interval, int) set search_path = %I, pg_temp', current_schema());
end $$;
