-- Up Migration

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
