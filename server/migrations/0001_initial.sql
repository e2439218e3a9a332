-- One row: tells installations apart that share a Redis.
create table installation (
  id uuid not null default gen_random_uuid(),
  is_only boolean primary key default true check (is_only),
  -- Which database the installation's id was made in, as database_identity() says; null: no replica has served it yet. A copy of
  -- the database, a restored one and a promoted standby say otherwise of themselves.
  made_in text,
  -- Fencing tokens are microseconds of the database's clock (server/decisions/0025-tokens-from-the-clock.md). No token of a record
  -- that was swept may be above this floor, also if the clock is set back. 0: no replica has raised it yet.
  token_floor bigint not null default 0,
  -- When the database went back in time the last time, so that records may be lost: keys that were created before it and have no record
  -- begin no life where late keys are refused (server/decisions/0024-late-keys.md). Null: it never did.
  records_lost_at timestamptz,
  -- The floor of fencing tokens that the installation had when it got its id. A replica that has read a higher one before knows that the
  -- database went back. Null: the loss is stored, or there was no earlier id.
  floor_found bigint
);
insert into installation default values;

create table tenants (
  id int generated always as identity primary key,
  name text collate "C" not null unique check (name ~ '^[a-z0-9][a-z0-9._-]{0,62}$'),
  created_at timestamptz not null default now(),
  suspended_at timestamptz,
  -- Part of the name of every cached copy of the tenant's records. Bumping it makes all of them unfindable.
  cache_generation int not null default 0,
  -- The tenant's policy; null: the service's default.
  key_retention_s int check (key_retention_s > 0),
  result_retention_s int check (result_retention_s > 0),
  failure_retention_s int check (failure_retention_s > 0),
  default_lease_ms int check (default_lease_ms > 0),
  max_lease_ms int check (max_lease_ms > 0),
  on_lease_expiry text check (on_lease_expiry in ('RECLAIM', 'HOLD')),
  max_result_bytes int check (max_result_bytes > 0),
  require_fingerprint boolean,
  -- Raised by every change; the etag is made of it.
  version int not null default 1,
  -- Set once its records are being removed; the row goes last.
  deleted_at timestamptz,
  -- What the operator lets the tenant set; null: what the contract allows.
  min_key_retention_s int check (min_key_retention_s > 0),
  max_key_retention_s int check (max_key_retention_s > 0),
  max_lease_bound_ms int check (max_lease_bound_ms > 0),
  max_result_bytes_bound int check (max_result_bytes_bound > 0),
  -- How much the tenant may use; null: no limit.
  quota_operations_per_second int check (quota_operations_per_second > 0),
  quota_burst int check (quota_burst > 0),
  quota_concurrent_calls int check (quota_concurrent_calls > 0),
  quota_live_records bigint check (quota_live_records > 0),
  quota_stored_bytes bigint check (quota_stored_bytes > 0),
  weight int check (weight between 1 and 100),
  quota_dry_run boolean not null default false,
  -- How many namespaces the tenant may declare; null: domain/quotas.ts.
  quota_declared_namespaces int check (quota_declared_namespaces > 0),
  -- Raised by every change of the tenant's namespaces; 0: it never declared one. Replicas load the policy of a namespace
  -- on demand, and keep it for as long as this is what it was.
  namespaces_version int not null default 0,
  -- Names the tenant in everything that can outlive the database's memory of it. A restore or a promotion takes sequences back,
  -- so that an id may be given out twice; a random number is not.
  uid uuid not null default gen_random_uuid(),
  -- Since when the tenant is moving to another installation; null: it is not. Its calls are refused, as those of a suspended tenant,
  -- with a retry time: the other installation will answer them (deploy/cells.md).
  moving_since timestamptz,
  -- Whether keys that are older than key_retention are refused, and what the earlier policies leave behind: when
  -- key_retention was lengthened, what it was before, and since when late keys are refused
  -- (server/decisions/0024-late-keys.md).
  late_keys text check (late_keys in ('RUN', 'REFUSE', 'REQUIRE_TIME')),
  retention_lengthened_at timestamptz,
  retention_before_s int,
  late_keys_refused_since timestamptz,
  -- Where a person looks up whether the effect of an ambiguous record happened (policy.proto).
  provider_link text,
  -- When records of the tenant's were lost the last time, in an installation that it has moved from (server/decisions/0024-late-keys.md).
  records_lost_at timestamptz
);

create table namespaces (
  tenant_id int not null references tenants (id) on delete cascade,
  name text collate "C" not null check (name ~ '^[a-z0-9][a-z0-9._-]{0,62}$'),
  created_at timestamptz not null default now(),
  -- What the namespace overrides; null: the tenant's.
  key_retention_s int check (key_retention_s > 0),
  result_retention_s int check (result_retention_s > 0),
  failure_retention_s int check (failure_retention_s > 0),
  default_lease_ms int check (default_lease_ms > 0),
  max_lease_ms int check (max_lease_ms > 0),
  on_lease_expiry text check (on_lease_expiry in ('RECLAIM', 'HOLD')),
  max_result_bytes int check (max_result_bytes > 0),
  require_fingerprint boolean,
  version int not null default 1,
  late_keys text check (late_keys in ('RUN', 'REFUSE', 'REQUIRE_TIME')),
  retention_lengthened_at timestamptz,
  retention_before_s int,
  late_keys_refused_since timestamptz,
  provider_link text,
  primary key (tenant_id, name)
);
-- Finds the tenants that have ambiguous records, without reading all namespaces of each.
create index namespaces_that_hold on namespaces (tenant_id) where on_lease_expiry = 'HOLD';

create table api_keys (
  id text collate "C" primary key,
  -- Null: an operator's key.
  tenant_id int references tenants (id) on delete cascade,
  role text not null check (role in ('CALLER', 'TENANT_ADMIN', 'OPERATOR')),
  label text not null default '',
  -- HMAC-SHA256 of the secret under the deployment's pepper. The secret itself is stored nowhere.
  digest bytea not null check (octet_length(digest) = 32),
  -- The only namespaces the key is good for; null: all.
  namespaces text[],
  created_at timestamptz not null default now(),
  expires_at timestamptz,
  revoked_at timestamptz,
  -- When a key was last used, to the hour.
  last_used_at timestamptz,
  -- The mark of the pepper of the key's digest; null: not known.
  pepper_mark bytea,
  check ((tenant_id is null) = (role = 'OPERATOR'))
);
create index api_keys_tenant_id on api_keys (tenant_id, created_at desc, id desc);

-- The one table that matters. Its primary key is the only authority on who may perform a side effect.
--
-- Every record is written twice, by its claim and by what settles it, and is laid out for the second time: no indexed
-- column changes then, and the fill factor leaves room on the page for both versions of every row (a heap-only update);
-- what changes stands behind what doesn't, so that the log holds only the tail. Figures:
-- server/decisions/0003-where-expiry-stands.md
create table records (
  tenant_id int not null,
  namespace text collate "C" not null,
  key text collate "C" not null,

  -- What the claim writes.
  fencing_token bigint not null,
  attempt int not null,
  -- Stamped at the claim, so that a record's fate never depends on which replica looks.
  holds_on_lease_expiry boolean not null,
  -- Of the claim that wrote the row; read only as excluded.accepts_ambiguous, to decide whether it may take over.
  accepts_ambiguous boolean not null,
  lease_ms int not null,
  key_retention_s int not null,
  result_retention_s int not null,
  failure_retention_s int not null,
  first_claimed_at timestamptz not null,
  claimed_at timestamptz not null,
  -- When the sweep looks at the row. At the claim, when everything ends for a claim that is completed within its lease;
  -- only the sweep moves it on, so that no other update touches an index.
  sweep_at timestamptz not null,
  claim_id text collate "C" not null,
  owner text not null,
  fingerprint bytea,

  -- What a heartbeat changes.
  lease_expires_at timestamptz not null,
  checkpoint_name text,
  checkpoint_state bytea,
  expires_at timestamptz not null,

  -- What settles it.
  -- 0 forgotten (absent to every reader; keeps the token until the sweep), 1 in progress, 2 completed, 3 released.
  state smallint not null check (state between 0 and 3),
  -- When it was completed or released.
  settled_at timestamptz,
  release_reason text,
  result_expires_at timestamptz,
  result_kind smallint check (result_kind between 1 and 2),
  result_digest bytea,
  result_content_type text,
  result_metadata text,
  result_payload bytea,
  -- Which configured key encrypts the row's result (payload, metadata, digest) and its checkpoint's state; null: they are stored
  -- in plain form.
  result_key_id smallint,
  checkpoint_key_id smallint,
  -- The attempts of the record's life that ended, oldest first, at most 16: an array of objects of texts
  -- (store/records/read-attempts.ts). Null: none ended but the one that the row's other columns describe.
  past_attempts jsonb,
  -- From when a record is ambiguous unless its claim settles before: the end of its lease, for a record in progress under HOLD. Null
  -- for all others, so that a completion under RECLAIM touches no index.
  ambiguous_from timestamptz
    generated always as (case when state = 1 /* in progress */ and holds_on_lease_expiry then lease_expires_at end) stored,
  primary key (tenant_id, namespace, key)
) with (fillfactor = 30);
create index records_sweep_at on records (sweep_at);

-- Replicas at work. Each one's row says that it lives, and which of its usage was stored last.
create table replicas (
  id uuid primary key,
  version text not null,
  started_at timestamptz not null default now(),
  seen_at timestamptz not null default now(),
  -- The number of the last flush of usage: a flush whose reply was lost is not counted twice.
  usage_seq bigint not null default 0,
  -- What each replica tells of itself at its heartbeat.
  degraded text[] not null default '{}',
  calls_in_flight integer,
  operations_per_second double precision,
  connections integer,
  pool_size integer,
  pool_busy integer,
  pool_awaited integer,
  -- Where each replica runs, and how wrong its clock is.
  host text,
  clock_ahead_ms double precision,
  -- How far each replica saw the database's clock move against its machine's uptime, so that a replica that starts
  -- afterwards knows.
  clock_moved_ms double precision
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
-- By which a replica finds the most overdue count of a tenant's records.
create index tenant_totals_count_due_at on tenant_totals (count_due_at);

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
  late_keys_refused bigint not null default 0,
  late_keys_granted bigint not null default 0,
  without_key_time bigint not null default 0,
  -- Calls beyond a quota, by reason.
  refused_by_rate bigint not null default 0,
  refused_by_concurrency bigint not null default 0,
  refused_by_records bigint not null default 0,
  refused_by_bytes bigint not null default 0,
  would_be_refused bigint not null default 0,
  primary key (tenant_id, hour, namespace)
) with (fillfactor = 50);
-- In UTC, so that it serves no other statement: those that read a tenant's hours go by the primary key.
create index usage_hours_hour on usage_hours (timezone('utc', hour));

-- Changes of many records, in the background. Any replica takes one that no other replica works on.
create table record_jobs (
  id bigint generated always as identity primary key,
  tenant_id int not null,
  -- Null: all namespaces of the tenant.
  namespace text collate "C",
  -- DELETE: of a whole tenant, whose row goes last.
  kind text not null check (kind in ('RESTAMP', 'FORGET', 'DELETE', 'RESOLVE')),
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
  records_forgotten bigint not null default 0,
  -- Whether an administrator ended the job, at `finished_at`.
  cancelled boolean not null default false,
  -- How a job resolves records, as JSON, until the job is finished.
  resolution text
);
create index record_jobs_tenant_id on record_jobs (tenant_id, id desc);
create index record_jobs_unfinished on record_jobs (starts_at) where finished_at is null;
-- By which workers take tenants in turns.
create index record_jobs_unfinished_of_tenant on record_jobs (tenant_id, id) where finished_at is null;
-- By which rows are pruned that are older than their retention.
create index record_jobs_finished on record_jobs (finished_at) where finished_at is not null;

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
  request_id text not null,
  -- How many calls an event stands for: denials of one kind within a minute are one event.
  calls int not null default 1 check (calls > 0)
);
create index audit_events_at on audit_events (at, id);
create index audit_events_tenant_id on audit_events (tenant_id, at, id);
create index audit_events_tenant on audit_events (tenant, at, id);

-- What was written stays as it was for every role; events older than 30 days, the shortest retention that can be configured, can be
-- deleted. Taking this away takes the owner of the table, and leaves a trace in Postgres' own log; run the service as another role:
-- deploy/README.md.
create function audit_events_are_final() returns trigger language plpgsql as $$
begin
  raise exception 'audit events are final';
end $$;
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

-- The pass over all records that encrypts them under the current key, as far as it has come. All replicas share one.
create table encryption_pass (
  is_only boolean primary key default true check (is_only),
  -- The key that the pass encrypts under; null: it decrypts.
  key_id smallint,
  -- The last record that was examined.
  after_tenant_id int not null default 0,
  after_namespace text collate "C" not null default '',
  after_key text collate "C" not null default '',
  started_at timestamptz not null default now(),
  finished_at timestamptz,
  records_examined bigint not null default 0,
  records_changed bigint not null default 0,
  -- Records that another statement changed in between: the next pass takes them.
  records_skipped bigint not null default 0,
  records_unreadable bigint not null default 0,
  -- Bounds the rate. After a finished pass: when the next one begins.
  next_page_at timestamptz not null default now()
) with (fillfactor = 50);

-- How late repeats come, in the buckets of domain/insight/lateness.ts, by the key retention that was in force. Only buckets that are
-- not empty are stored: element n of `repeats` counts the repeats of bucket `buckets[n]`.
create table insight_hours (
  tenant_id int not null references tenants (id) on delete cascade,
  namespace text collate "C" not null,
  hour timestamptz not null,
  retention_s int not null,
  claims bigint not null,
  -- Claims that began an operation: neither repeats nor take-overs.
  first_claims bigint not null,
  buckets smallint[] not null,
  repeats bigint[] not null,
  primary key (tenant_id, namespace, hour, retention_s)
) with (fillfactor = 50);
-- In UTC, as usage_hours_hour: for pruning alone.
create index insight_hours_hour on insight_hours (timezone('utc', hour));

-- Repeats that came after the end of their record, and therefore were granted. Each stands for 2^shift; 0: all such repeats were
-- seen. `squares` holds for each bucket the sum, over its keys, of the squared number of repeats.
create table insight_late_hours (
  tenant_id int not null references tenants (id) on delete cascade,
  namespace text collate "C" not null,
  hour timestamptz not null,
  retention_s int not null,
  shift smallint not null,
  buckets smallint[] not null,
  repeats bigint[] not null,
  squares bigint[] not null,
  primary key (tenant_id, namespace, hour, retention_s, shift)
) with (fillfactor = 50);
create index insight_late_hours_hour on insight_late_hours (timezone('utc', hour));

-- Which keys of a namespace are sampled: those of a depth of `shift` or more, one in 2^shift. Deleting the row deletes the
-- namespace's tombstones.
create table insight_samples (
  tenant_id int not null references tenants (id) on delete cascade,
  namespace text collate "C" not null,
  shift smallint not null default 0,
  -- At least the number of tombstones of that depth.
  held int not null default 0,
  -- Keys that ended from here on are sampled.
  since timestamptz not null,
  changed_at timestamptz not null default now(),
  primary key (tenant_id, namespace)
) with (fillfactor = 50);
create index insight_samples_changed_at on insight_samples (changed_at, tenant_id, namespace);

-- What the sweep leaves of a sampled key whose record it deleted.
create table insight_tombstones (
  tenant_id int not null,
  namespace text collate "C" not null,
  -- Of the key, keyed with the pepper.
  hash bytea not null check (octet_length(hash) = 16),
  depth smallint not null,
  -- Of the key's first record, also if the key has come back since.
  first_claimed_at timestamptz not null,
  -- When the newest record ended; infinity: the key has come back since.
  ended_at timestamptz not null,
  returns int not null default 0,
  keep_until timestamptz not null,
  primary key (tenant_id, namespace, hash),
  foreign key (tenant_id, namespace) references insight_samples (tenant_id, namespace) on delete cascade
) with (fillfactor = 70);
create index insight_tombstones_keep_until on insight_tombstones (keep_until);

-- Of which shape the keys of a namespace are (domain/insight/key-shape.ts): counts of some of a day's first claims.
create table insight_key_days (
  tenant_id int not null references tenants (id) on delete cascade,
  namespace text collate "C" not null,
  day timestamptz not null,
  claims bigint not null,
  without_fingerprint bigint not null,
  times bigint not null,
  attempts bigint not null,
  random_uuids bigint not null,
  prompt_uuids bigint not null,
  primary key (tenant_id, namespace, day)
) with (fillfactor = 50);
-- In UTC, as usage_hours_hour: for pruning alone.
create index insight_key_days_day on insight_key_days (timezone('utc', day));

-- Which fingerprints of a namespace are sampled: those of a depth of `shift` or more, one in 2^shift. Deleting the row deletes the
-- namespace's sampled keys.
create table insight_key_samples (
  tenant_id int not null references tenants (id) on delete cascade,
  namespace text collate "C" not null,
  shift smallint not null,
  -- At least the number of sampled keys of that depth.
  held int not null,
  changed_at timestamptz not null default now(),
  primary key (tenant_id, namespace)
) with (fillfactor = 50);

-- The first claims of sampled fingerprints. Hashes are keyed with the pepper.
create table insight_sampled_keys (
  tenant_id int not null,
  namespace text collate "C" not null,
  fingerprint_hash bytea not null check (octet_length(fingerprint_hash) = 16),
  key_hash bytea not null check (octet_length(key_hash) = 16),
  -- Of the key without the counter at its end; null: it has none.
  stem_hash bytea check (octet_length(stem_hash) = 16),
  depth smallint not null,
  claimed_at timestamptz not null,
  primary key (tenant_id, namespace, fingerprint_hash, key_hash),
  foreign key (tenant_id, namespace) references insight_key_samples (tenant_id, namespace) on delete cascade
);
-- A forgotten key is removed by its hash.
create index insight_sampled_keys_key on insight_sampled_keys (tenant_id, namespace, key_hash);
create index insight_sampled_keys_claimed_at on insight_sampled_keys (claimed_at);

-- The sessions of people who are signed in to the console.
create table console_sessions (
  -- HMAC-SHA256 of the cookie's value under the deployment's pepper.
  digest bytea primary key check (octet_length(digest) = 32),
  -- A restored database may hold sessions that were ended after the backup: a renewed installation ends all sessions.
  installation_id uuid not null,
  -- Null: an operator's.
  tenant_id int references tenants (id) on delete cascade,
  -- The id of the API key, or the subject of the token.
  actor text collate "C" not null,
  -- Of the API key that signed in, as api_keys.digest; null: a token did.
  key_digest bytea check (octet_length(key_digest) = 32),
  -- The token's identity; null: an API key signed in.
  issuer text collate "C",
  role text check (role in ('CALLER', 'TENANT_ADMIN', 'OPERATOR')),
  -- Null: all.
  namespaces text[],
  created_at timestamptz not null default now(),
  last_used_at timestamptz not null default now(),
  ends_at timestamptz not null,
  check ((issuer is null) = (key_digest is not null)),
  check ((issuer is null) = (role is null)),
  check (role is null or (tenant_id is null) = (role = 'OPERATOR'))
) with (fillfactor = 50);
create index console_sessions_actor on console_sessions (actor, created_at);
create index console_sessions_tenant_id on console_sessions (tenant_id);
create index console_sessions_ends_at on console_sessions (ends_at);

-- Returns at most max_names of a tenant's namespaces that have records, by name, behind after_name. One look at the
-- primary key for each, however many records it has.
create function namespaces_in_use(tenant integer, after_name text, max_names integer) returns setof text
  language plpgsql stable
as $$
declare
  name text collate "C" := after_name;
begin
  for n in 1..max_names loop
    select r.namespace
      into name
      from records r
     where r.tenant_id = tenant
       and r.namespace > name
     order by r.tenant_id, r.namespace
     limit 1;
    exit when not found;
    return next name;
  end loop;
end
$$;

-- The pepper of API keys (ONCEWARD_API_KEY_PEPPER) as a mark that tells peppers apart: HMAC-SHA256 under the pepper. No row: no replica
-- has started yet. A table of its own, because the row of `installation` must never be written again: its transaction
-- identifies the database.
create table pepper_check (
  is_only boolean primary key default true check (is_only),
  mark bytea not null check (octet_length(mark) = 32)
);

-- Gives the installation another id, keeps the floor that it found, and raises the floor of fencing tokens and the sequences of ids, but
-- for those of tenants, beyond those that it can have given out before the database went back. False: the id is not the known one any
-- more, so that another call was quicker, and nothing was changed. It runs as the owner, because the service's role may draw from
-- sequences and not set them; and a role that cannot read the id changes nothing by calling it.
--
-- Ids rise beyond those of the rows, too, for a restore that left sequences out.
create function renew_installation(known_id uuid, token_floor bigint) returns boolean
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
-- back, and the ids are 32 bits wide: 100,000 more leave room for 20,000 restores. The last statement of a renewal, which has then little
-- left that can fail.
create function raise_tenant_ids() returns void
language sql volatile security definer set search_path = public, pg_temp as $$
  select setval('tenants_id_seq', least(
           greatest(last_value, (select max(id) from tenants), (select max(tenant_id) from records)) + 100000, 2147483647))
    from tenants_id_seq
$$;

-- What each replica counted in the last minute, and the minutes of the last hour, so that any replica can add them up
-- (server/decisions/0027-what-happens-now.md). Unlogged: they cost no write-ahead log, and are worth nothing after a crash.
create unlogged table usage_now (
  replica_id uuid primary key,
  valid_until timestamptz not null,
  -- How long the counts took.
  seconds float8 not null,
  -- By tenant, then namespace.
  counts jsonb not null
);

create unlogged table usage_minutes (
  minute timestamptz not null,
  replica_id uuid not null,
  -- By tenant.
  counts jsonb not null,
  primary key (minute, replica_id)
);

-- What came of claims of a key that did not get it (server/decisions/0028-the-history-of-a-key.md). A tenant has at most one row a
-- slot: a key takes the slot of its hash, and with it the row of the key that had it before.
create table key_histories (
  tenant_id int not null references tenants (id) on delete cascade,
  slot int not null,
  namespace text not null collate "C",
  -- As in the names of records in audit events.
  key_hash bytea not null,
  replayed bigint not null,
  in_progress bigint not null,
  ambiguous bigint not null,
  mismatched bigint not null,
  too_old bigint not null,
  over_quota bigint not null,
  superseded bigint not null,
  first_at timestamptz not null,
  last_at timestamptz not null,
  -- Some of them, in the order in which they were stored: milliseconds since the Unix epoch, outcome, actor, request id.
  calls jsonb not null,
  primary key (tenant_id, slot)
);

-- A tenant with a quota of records or bytes has a row, whichever statement sets the quota. The row stays until its next count.
create function add_tenant_totals() returns trigger language plpgsql as $$
begin
  insert into tenant_totals (tenant_id) values (new.id) on conflict do nothing;
  return null;
end $$;
create trigger tenants_quota_set after insert or update of quota_live_records, quota_stored_bytes on tenants
  for each row when (new.quota_live_records is not null or new.quota_stored_bytes is not null)
  execute function add_tenant_totals();
