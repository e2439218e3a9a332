-- Up Migration

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
