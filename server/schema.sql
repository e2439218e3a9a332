-- The schema that the migrations make, written by `npm run schema:dump`. Not for editing, and never run.

create sequence fencing_tokens as bigint increment by 1024 start with 1;

create table api_keys (
  id text collate "C" not null,
  tenant_id integer,
  role text not null,
  label text not null default ''::text,
  digest bytea not null,
  namespaces text[],
  created_at timestamp with time zone not null default now(),
  expires_at timestamp with time zone,
  revoked_at timestamp with time zone,
  constraint api_keys_check CHECK (((tenant_id IS NULL) = (role = 'OPERATOR'::text))),
  constraint api_keys_digest_check CHECK ((octet_length(digest) = 32)),
  constraint api_keys_pkey PRIMARY KEY (id),
  constraint api_keys_role_check CHECK ((role = ANY (ARRAY['CALLER'::text, 'TENANT_ADMIN'::text, 'OPERATOR'::text]))),
  constraint api_keys_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
);

create table installation (
  id uuid not null default gen_random_uuid(),
  is_only boolean not null default true,
  constraint installation_is_only_check CHECK (is_only),
  constraint installation_pkey PRIMARY KEY (is_only)
);

create table namespaces (
  tenant_id integer not null,
  name text collate "C" not null,
  created_at timestamp with time zone not null default now(),
  key_retention_s integer,
  result_retention_s integer,
  failure_retention_s integer,
  default_lease_ms integer,
  max_lease_ms integer,
  on_lease_expiry text,
  max_result_bytes integer,
  require_fingerprint boolean,
  constraint namespaces_default_lease_ms_check CHECK ((default_lease_ms > 0)),
  constraint namespaces_failure_retention_s_check CHECK ((failure_retention_s > 0)),
  constraint namespaces_key_retention_s_check CHECK ((key_retention_s > 0)),
  constraint namespaces_max_lease_ms_check CHECK ((max_lease_ms > 0)),
  constraint namespaces_max_result_bytes_check CHECK ((max_result_bytes > 0)),
  constraint namespaces_name_check CHECK ((name ~ '^[a-z0-9][a-z0-9._-]{0,62}$'::text)),
  constraint namespaces_on_lease_expiry_check CHECK ((on_lease_expiry = ANY (ARRAY['RECLAIM'::text, 'HOLD'::text]))),
  constraint namespaces_pkey PRIMARY KEY (tenant_id, name),
  constraint namespaces_result_retention_s_check CHECK ((result_retention_s > 0)),
  constraint namespaces_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
);

create table records (
  tenant_id integer not null,
  namespace text collate "C" not null,
  key text collate "C" not null,
  fencing_token bigint not null,
  attempt integer not null,
  holds_on_lease_expiry boolean not null,
  accepts_ambiguous boolean not null,
  lease_ms integer not null,
  key_retention_s integer not null,
  result_retention_s integer not null,
  failure_retention_s integer not null,
  first_claimed_at timestamp with time zone not null,
  claimed_at timestamp with time zone not null,
  sweep_at timestamp with time zone not null,
  claim_id text collate "C" not null,
  owner text not null,
  fingerprint bytea,
  lease_expires_at timestamp with time zone not null,
  checkpoint_name text,
  checkpoint_state bytea,
  expires_at timestamp with time zone not null,
  state smallint not null,
  settled_at timestamp with time zone,
  release_reason text,
  result_expires_at timestamp with time zone,
  result_kind smallint,
  result_digest bytea,
  result_content_type text,
  result_metadata text,
  result_payload bytea,
  constraint records_pkey PRIMARY KEY (tenant_id, namespace, key),
  constraint records_result_kind_check CHECK (((result_kind >= 1) AND (result_kind <= 2))),
  constraint records_state_check CHECK (((state >= 0) AND (state <= 3)))
) with (fillfactor=30);

create table tenants (
  id integer not null generated always as identity,
  name text collate "C" not null,
  created_at timestamp with time zone not null default now(),
  suspended_at timestamp with time zone,
  cache_generation integer not null default 0,
  key_retention_s integer,
  result_retention_s integer,
  failure_retention_s integer,
  default_lease_ms integer,
  max_lease_ms integer,
  on_lease_expiry text,
  max_result_bytes integer,
  require_fingerprint boolean,
  constraint tenants_default_lease_ms_check CHECK ((default_lease_ms > 0)),
  constraint tenants_failure_retention_s_check CHECK ((failure_retention_s > 0)),
  constraint tenants_key_retention_s_check CHECK ((key_retention_s > 0)),
  constraint tenants_max_lease_ms_check CHECK ((max_lease_ms > 0)),
  constraint tenants_max_result_bytes_check CHECK ((max_result_bytes > 0)),
  constraint tenants_name_check CHECK ((name ~ '^[a-z0-9][a-z0-9._-]{0,62}$'::text)),
  constraint tenants_name_key UNIQUE (name),
  constraint tenants_on_lease_expiry_check CHECK ((on_lease_expiry = ANY (ARRAY['RECLAIM'::text, 'HOLD'::text]))),
  constraint tenants_pkey PRIMARY KEY (id),
  constraint tenants_result_retention_s_check CHECK ((result_retention_s > 0))
);

CREATE INDEX records_sweep_at ON public.records USING btree (sweep_at);
