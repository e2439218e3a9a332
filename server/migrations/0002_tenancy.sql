-- Up Migration

alter table tenants
  -- Raised by every change; the etag is made of it.
  add column version int not null default 1,
  -- Set once its records are being removed; the row goes last.
  add column deleted_at timestamptz,
  -- What the operator lets the tenant set; null: what the contract allows.
  add column min_key_retention_s int check (min_key_retention_s > 0),
  add column max_key_retention_s int check (max_key_retention_s > 0),
  add column max_lease_bound_ms int check (max_lease_bound_ms > 0),
  add column max_result_bytes_bound int check (max_result_bytes_bound > 0),
  -- How much the tenant may use; null: no limit.
  add column quota_operations_per_second int check (quota_operations_per_second > 0),
  add column quota_burst int check (quota_burst > 0),
  add column quota_concurrent_calls int check (quota_concurrent_calls > 0),
  add column quota_live_records bigint check (quota_live_records > 0),
  add column quota_stored_bytes bigint check (quota_stored_bytes > 0),
  add column weight int check (weight between 1 and 100),
  add column quota_dry_run boolean not null default false;

alter table namespaces
  add column version int not null default 1;

create index tenants_counted on tenants (id) where quota_live_records is not null or quota_stored_bytes is not null;

create index api_keys_tenant_id on api_keys (tenant_id, created_at desc, id desc);

-- Replicas at work. Each one's row says that it lives, and which of its usage was stored last.
create table replicas (
  id uuid primary key,
  version text not null,
  started_at timestamptz not null default now(),
  seen_at timestamptz not null default now(),
  -- The number of the last flush of usage: a flush whose reply was lost is not counted twice.
  usage_seq bigint not null default 0
);

-- What each tenant stores, for its quotas. Replicas add what they know to have changed; a count now and then sets it
-- right, so that nothing that a replica took with it when it died stays wrong.
create table tenant_totals (
  tenant_id int primary key references tenants (id) on delete cascade,
  records bigint not null default 0,
  stored_bytes bigint not null default 0,
  count_due_at timestamptz not null default '-infinity',
  -- Until when the replica that counts has this to itself.
  counting_until timestamptz not null default '-infinity'
) with (fillfactor = 50);

create table usage_hours (
  tenant_id int not null references tenants (id) on delete cascade,
  hour timestamptz not null,
  namespace text collate "C" not null,
  claims bigint not null default 0,
  granted bigint not null default 0,
  replayed bigint not null default 0,
  in_progress bigint not null default 0,
  ambiguous bigint not null default 0,
  mismatches bigint not null default 0,
  reclaims bigint not null default 0,
  fenced bigint not null default 0,
  completions bigint not null default 0,
  swept bigint not null default 0,
  -- Repeats by how late they came, a number for each bucket of domain/usage.ts.
  repeat_lateness bigint[] not null,
  primary key (tenant_id, hour, namespace)
) with (fillfactor = 50);

-- Changes of many records, in the background. Any replica takes one that no other replica works on.
create table record_jobs (
  id bigint generated always as identity primary key,
  tenant_id int not null,
  -- Null: all namespaces of the tenant.
  namespace text collate "C",
  -- DELETE: of a whole tenant, whose row goes last.
  kind text not null check (kind in ('RESTAMP', 'FORGET', 'DELETE')),
  -- What the work needs to know, such as the policies before and after; see store/record-jobs.ts.
  terms jsonb not null,
  created_at timestamptz not null default now(),
  starts_at timestamptz not null,
  finished_at timestamptz,
  -- The last record that was looked at; null: none yet.
  after_namespace text collate "C",
  after_key text collate "C",
  records_examined bigint not null default 0,
  records_changed bigint not null default 0,
  records_forgotten bigint not null default 0
);
create index record_jobs_tenant_id on record_jobs (tenant_id, id desc);
create index record_jobs_unfinished on record_jobs (starts_at) where finished_at is null;

create table audit_events (
  id bigint generated always as identity primary key,
  at timestamptz not null default clock_timestamp(),
  -- The tenant's name, which outlives it; empty: it concerned none.
  tenant text collate "C" not null,
  -- Tells a tenant's events from those of an earlier one of the same name.
  tenant_id int,
  actor text not null,
  action text not null,
  target text not null,
  outcome text not null check (outcome in ('DONE', 'DENIED')),
  denial text not null default '',
  reason text not null default '',
  before jsonb,
  after jsonb,
  request_id text not null
);
create index audit_events_at on audit_events (at, id);
create index audit_events_tenant_id on audit_events (tenant_id, at, id);
create index audit_events_tenant on audit_events (tenant, at, id);

-- What was written stays as it was for every role. Taking this away takes the owner of the table, and leaves a trace in
-- Postgres' own log; run the service as another role: deploy/README.md.
create function audit_events_are_final() returns trigger language plpgsql as $$
begin
  raise exception 'audit events are final';
end $$;
create trigger audit_events_are_final before update or delete or truncate on audit_events
  for each statement execute function audit_events_are_final();
