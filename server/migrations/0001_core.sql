-- Up Migration

-- One row: tells installations apart that share a Redis.
create table installation (
  id uuid not null default gen_random_uuid(),
  is_only boolean primary key default true check (is_only)
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
  require_fingerprint boolean
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
  primary key (tenant_id, name)
);

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
  check ((tenant_id is null) = (role = 'OPERATOR'))
);

-- A statement draws its token before it waits for a row lock, so tokens are not granted in the order in which they are
-- drawn, and a claim takes greatest(drawn, row's + 1). The stride leaves room for those "+ 1"s below the next token
-- that is drawn: more than there can be statements in flight, so that a drawn token exceeds every earlier one of its
-- key even after the row was swept.
create sequence fencing_tokens as bigint increment by 1024;

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
  primary key (tenant_id, namespace, key)
) with (fillfactor = 30);

create index records_sweep_at on records (sweep_at);
