-- Up Migration

-- Samples of keys and of fingerprints are in the same two tables, by kind, and begin again. Counts of hours and days stay.
drop table insight_tombstones, insight_sampled_keys;
drop table insight_samples, insight_key_samples;

-- Which keys or fingerprints of a namespace are sampled: those of a depth of `shift` or more, one in 2^shift. Deleting the row
-- deletes the sample.
create table insight_sample_shifts (
  tenant_id int not null references tenants (id) on delete cascade,
  namespace text collate "C" not null,
  kind text collate "C" not null check (kind in ('key', 'fingerprint')),
  shift smallint not null default 0,
  -- At least the number of sampled keys of that depth.
  held int not null default 0,
  -- What ended, or was claimed, from here on is sampled.
  since timestamptz not null,
  changed_at timestamptz not null default now(),
  primary key (tenant_id, namespace, kind)
) with (fillfactor = 50);
create index insight_sample_shifts_changed_at on insight_sample_shifts (changed_at, tenant_id, namespace, kind);

-- Of kind `key`: a tombstone, which the sweep leaves of a sampled key whose record it deleted. Of kind `fingerprint`: the key of a
-- first claim with a sampled fingerprint. Hashes are keyed with the pepper.
create table insight_sampled_keys (
  tenant_id int not null,
  namespace text collate "C" not null,
  kind text collate "C" not null,
  key_hash bytea not null check (octet_length(key_hash) = 16),
  -- Empty of kind `key`.
  fingerprint_hash bytea not null check (octet_length(fingerprint_hash) = case kind when 'key' then 0 else 16 end),
  -- Of kind `fingerprint`, of the key without the counter at its end; null: it has none.
  stem_hash bytea check (octet_length(stem_hash) = 16),
  depth smallint not null,
  -- Of the key's first record, also if the key has come back since.
  first_claimed_at timestamptz not null,
  -- Of kind `key`: when the newest record ended; infinity: the key has come back since.
  ended_at timestamptz check ((ended_at is null) = (kind = 'fingerprint')),
  returns int not null default 0,
  keep_until timestamptz not null,
  primary key (tenant_id, namespace, kind, key_hash, fingerprint_hash),
  foreign key (tenant_id, namespace, kind) references insight_sample_shifts (tenant_id, namespace, kind) on delete cascade
) with (fillfactor = 70);
create index insight_sampled_keys_keep_until on insight_sampled_keys (keep_until);
