-- Up Migration

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
