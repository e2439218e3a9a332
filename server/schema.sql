-- The schema that the migrations make, written by `npm run generate -- schema`. Not for editing, and never run.

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
  last_used_at timestamp with time zone,
  pepper_mark bytea,
  constraint api_keys_check CHECK (((tenant_id IS NULL) = (role = 'OPERATOR'::text))),
  constraint api_keys_digest_check CHECK ((octet_length(digest) = 32)),
  constraint api_keys_pkey PRIMARY KEY (id),
  constraint api_keys_role_check CHECK ((role = ANY (ARRAY['CALLER'::text, 'TENANT_ADMIN'::text, 'OPERATOR'::text]))),
  constraint api_keys_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
);

create table audit_events (
  id bigint not null generated always as identity,
  at timestamp with time zone not null default clock_timestamp(),
  tenant text collate "C" not null,
  tenant_id integer,
  actor text not null,
  action text not null,
  target text not null,
  outcome text not null,
  denial text not null default ''::text,
  reason text not null default ''::text,
  before jsonb,
  after jsonb,
  request_id text not null,
  calls integer not null default 1,
  constraint audit_events_calls_check CHECK ((calls > 0)),
  constraint audit_events_outcome_check CHECK ((outcome = ANY (ARRAY['DONE'::text, 'DENIED'::text]))),
  constraint audit_events_pkey PRIMARY KEY (id)
);

create table console_sessions (
  digest bytea not null,
  installation_id uuid not null,
  tenant_id integer,
  actor text collate "C" not null,
  key_digest bytea,
  issuer text collate "C",
  role text,
  namespaces text[],
  created_at timestamp with time zone not null default now(),
  last_used_at timestamp with time zone not null default now(),
  ends_at timestamp with time zone not null,
  constraint console_sessions_check CHECK (((issuer IS NULL) = (key_digest IS NOT NULL))),
  constraint console_sessions_check1 CHECK (((issuer IS NULL) = (role IS NULL))),
  constraint console_sessions_check2 CHECK (((role IS NULL) OR ((tenant_id IS NULL) = (role = 'OPERATOR'::text)))),
  constraint console_sessions_digest_check CHECK ((octet_length(digest) = 32)),
  constraint console_sessions_key_digest_check CHECK ((octet_length(key_digest) = 32)),
  constraint console_sessions_pkey PRIMARY KEY (digest),
  constraint console_sessions_role_check CHECK ((role = ANY (ARRAY['CALLER'::text, 'TENANT_ADMIN'::text, 'OPERATOR'::text]))),
  constraint console_sessions_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
) with (fillfactor=50);

create table encryption_pass (
  is_only boolean not null default true,
  key_id smallint,
  after_tenant_id integer not null default 0,
  after_namespace text collate "C" not null default ''::text,
  after_key text collate "C" not null default ''::text,
  started_at timestamp with time zone not null default now(),
  finished_at timestamp with time zone,
  records_examined bigint not null default 0,
  records_changed bigint not null default 0,
  records_skipped bigint not null default 0,
  records_unreadable bigint not null default 0,
  next_page_at timestamp with time zone not null default now(),
  constraint encryption_pass_is_only_check CHECK (is_only),
  constraint encryption_pass_pkey PRIMARY KEY (is_only)
) with (fillfactor=50);

create table insight_hours (
  tenant_id integer not null,
  namespace text collate "C" not null,
  hour timestamp with time zone not null,
  retention_s integer not null,
  claims bigint not null,
  first_claims bigint not null,
  buckets smallint[] not null,
  repeats bigint[] not null,
  constraint insight_hours_pkey PRIMARY KEY (tenant_id, namespace, hour, retention_s),
  constraint insight_hours_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
) with (fillfactor=50);

create table insight_key_days (
  tenant_id integer not null,
  namespace text collate "C" not null,
  day timestamp with time zone not null,
  claims bigint not null,
  without_fingerprint bigint not null,
  times bigint not null,
  attempts bigint not null,
  random_uuids bigint not null,
  prompt_uuids bigint not null,
  constraint insight_key_days_pkey PRIMARY KEY (tenant_id, namespace, day),
  constraint insight_key_days_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
) with (fillfactor=50);

create table insight_late_hours (
  tenant_id integer not null,
  namespace text collate "C" not null,
  hour timestamp with time zone not null,
  retention_s integer not null,
  shift smallint not null,
  buckets smallint[] not null,
  repeats bigint[] not null,
  squares bigint[] not null,
  constraint insight_late_hours_pkey PRIMARY KEY (tenant_id, namespace, hour, retention_s, shift),
  constraint insight_late_hours_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
) with (fillfactor=50);

create table insight_sample_shifts (
  tenant_id integer not null,
  namespace text collate "C" not null,
  kind text collate "C" not null,
  shift smallint not null default 0,
  held integer not null default 0,
  since timestamp with time zone not null,
  changed_at timestamp with time zone not null default now(),
  constraint insight_sample_shifts_kind_check CHECK ((kind = ANY (ARRAY['key'::text, 'fingerprint'::text]))),
  constraint insight_sample_shifts_pkey PRIMARY KEY (tenant_id, namespace, kind),
  constraint insight_sample_shifts_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
) with (fillfactor=50);

create table insight_sampled_keys (
  tenant_id integer not null,
  namespace text collate "C" not null,
  kind text collate "C" not null,
  key_hash bytea not null,
  fingerprint_hash bytea not null,
  stem_hash bytea,
  depth smallint not null,
  first_claimed_at timestamp with time zone not null,
  ended_at timestamp with time zone,
  returns integer not null default 0,
  keep_until timestamp with time zone not null,
  constraint insight_sampled_keys_check CHECK ((octet_length(fingerprint_hash) =
CASE kind
    WHEN 'key'::text THEN 0
    ELSE 16
END)),
  constraint insight_sampled_keys_check1 CHECK (((ended_at IS NULL) = (kind = 'fingerprint'::text))),
  constraint insight_sampled_keys_key_hash_check CHECK ((octet_length(key_hash) = 16)),
  constraint insight_sampled_keys_pkey PRIMARY KEY (tenant_id, namespace, kind, key_hash, fingerprint_hash),
  constraint insight_sampled_keys_stem_hash_check CHECK ((octet_length(stem_hash) = 16)),
  constraint insight_sampled_keys_tenant_id_namespace_kind_fkey FOREIGN KEY (tenant_id, namespace, kind) REFERENCES insight_sample_shifts(tenant_id, namespace, kind) ON DELETE CASCADE
) with (fillfactor=70);

create table installation (
  id uuid not null default gen_random_uuid(),
  is_only boolean not null default true,
  made_in text,
  token_floor bigint not null default 0,
  records_lost_at timestamp with time zone,
  floor_found bigint,
  constraint installation_is_only_check CHECK (is_only),
  constraint installation_pkey PRIMARY KEY (is_only)
);

create table key_histories (
  tenant_id integer not null,
  slot integer not null,
  namespace text collate "C" not null,
  key_hash bytea not null,
  replayed bigint not null,
  in_progress bigint not null,
  ambiguous bigint not null,
  mismatched bigint not null,
  too_old bigint not null,
  over_quota bigint not null,
  superseded bigint not null,
  first_at timestamp with time zone not null,
  last_at timestamp with time zone not null,
  calls jsonb not null,
  unreadable bigint not null default 0,
  constraint key_histories_pkey PRIMARY KEY (tenant_id, slot),
  constraint key_histories_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
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
  version integer not null default 1,
  late_keys text,
  retention_lengthened_at timestamp with time zone,
  retention_before_s integer,
  late_keys_refused_since timestamp with time zone,
  provider_link text,
  reclaim_within_s integer,
  constraint namespaces_default_lease_ms_check CHECK ((default_lease_ms > 0)),
  constraint namespaces_failure_retention_s_check CHECK ((failure_retention_s > 0)),
  constraint namespaces_key_retention_s_check CHECK ((key_retention_s > 0)),
  constraint namespaces_late_keys_check CHECK ((late_keys = ANY (ARRAY['RUN'::text, 'REFUSE'::text, 'REQUIRE_TIME'::text]))),
  constraint namespaces_max_lease_ms_check CHECK ((max_lease_ms > 0)),
  constraint namespaces_max_result_bytes_check CHECK ((max_result_bytes > 0)),
  constraint namespaces_name_check CHECK ((name ~ '^[a-z0-9][a-z0-9._-]{0,62}$'::text)),
  constraint namespaces_on_lease_expiry_check CHECK ((on_lease_expiry = ANY (ARRAY['RECLAIM'::text, 'HOLD'::text]))),
  constraint namespaces_pkey PRIMARY KEY (tenant_id, name),
  constraint namespaces_reclaim_within_s_check CHECK ((reclaim_within_s > 0)),
  constraint namespaces_result_retention_s_check CHECK ((result_retention_s > 0)),
  constraint namespaces_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
);

create table pepper_check (
  is_only boolean not null default true,
  mark bytea not null,
  constraint pepper_check_is_only_check CHECK (is_only),
  constraint pepper_check_mark_check CHECK ((octet_length(mark) = 32)),
  constraint pepper_check_pkey PRIMARY KEY (is_only)
);

create table record_jobs (
  id bigint not null generated always as identity,
  tenant_id integer not null,
  namespace text collate "C",
  kind text not null,
  terms jsonb not null,
  created_at timestamp with time zone not null default now(),
  starts_at timestamp with time zone not null,
  finished_at timestamp with time zone,
  after_namespace text collate "C",
  after_key text collate "C",
  records_examined bigint not null default 0,
  records_changed bigint not null default 0,
  records_forgotten bigint not null default 0,
  cancelled boolean not null default false,
  resolution text,
  constraint record_jobs_kind_check CHECK ((kind = ANY (ARRAY['RESTAMP'::text, 'FORGET'::text, 'DELETE'::text, 'RESOLVE'::text]))),
  constraint record_jobs_pkey PRIMARY KEY (id)
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
  result_key_id smallint,
  checkpoint_key_id smallint,
  past_attempts jsonb,
  ambiguous_from timestamp with time zone generated always as (
CASE
    WHEN ((state = 1) AND holds_on_lease_expiry) THEN lease_expires_at
    ELSE NULL::timestamp with time zone
END) stored,
  reclaim_within_s integer,
  unknown_since timestamp with time zone,
  pending_until timestamp with time zone,
  constraint records_pkey PRIMARY KEY (tenant_id, namespace, key),
  constraint records_result_kind_check CHECK (((result_kind >= 1) AND (result_kind <= 2))),
  constraint records_state_check CHECK (((state >= 0) AND (state <= 3)))
) with (fillfactor=30);

create table replicas (
  id uuid not null,
  version text not null,
  started_at timestamp with time zone not null default now(),
  seen_at timestamp with time zone not null default now(),
  usage_seq bigint not null default 0,
  degraded text[] not null default '{}'::text[],
  calls_in_flight integer,
  operations_per_second double precision,
  connections integer,
  pool_size integer,
  pool_busy integer,
  pool_awaited integer,
  host text,
  clock_ahead_ms double precision,
  clock_moved_ms double precision,
  constraint replicas_pkey PRIMARY KEY (id)
);

create table tenant_totals (
  tenant_id integer not null,
  records bigint not null default 0,
  stored_bytes bigint not null default 0,
  count_due_at timestamp with time zone not null default '-infinity'::timestamp with time zone,
  counting_until timestamp with time zone not null default '-infinity'::timestamp with time zone,
  constraint tenant_totals_pkey PRIMARY KEY (tenant_id),
  constraint tenant_totals_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
) with (fillfactor=50);

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
  version integer not null default 1,
  deleted_at timestamp with time zone,
  min_key_retention_s integer,
  max_key_retention_s integer,
  max_lease_bound_ms integer,
  max_result_bytes_bound integer,
  quota_operations_per_second integer,
  quota_burst integer,
  quota_concurrent_calls integer,
  quota_live_records bigint,
  quota_stored_bytes bigint,
  weight integer,
  quota_dry_run boolean not null default false,
  quota_declared_namespaces integer,
  namespaces_version integer not null default 0,
  uid uuid not null default gen_random_uuid(),
  moving_since timestamp with time zone,
  late_keys text,
  retention_lengthened_at timestamp with time zone,
  retention_before_s integer,
  late_keys_refused_since timestamp with time zone,
  provider_link text,
  records_lost_at timestamp with time zone,
  reclaim_within_s integer,
  moved_to text,
  constraint tenants_default_lease_ms_check CHECK ((default_lease_ms > 0)),
  constraint tenants_failure_retention_s_check CHECK ((failure_retention_s > 0)),
  constraint tenants_key_retention_s_check CHECK ((key_retention_s > 0)),
  constraint tenants_late_keys_check CHECK ((late_keys = ANY (ARRAY['RUN'::text, 'REFUSE'::text, 'REQUIRE_TIME'::text]))),
  constraint tenants_max_key_retention_s_check CHECK ((max_key_retention_s > 0)),
  constraint tenants_max_lease_bound_ms_check CHECK ((max_lease_bound_ms > 0)),
  constraint tenants_max_lease_ms_check CHECK ((max_lease_ms > 0)),
  constraint tenants_max_result_bytes_bound_check CHECK ((max_result_bytes_bound > 0)),
  constraint tenants_max_result_bytes_check CHECK ((max_result_bytes > 0)),
  constraint tenants_min_key_retention_s_check CHECK ((min_key_retention_s > 0)),
  constraint tenants_name_check CHECK ((name ~ '^[a-z0-9][a-z0-9._-]{0,62}$'::text)),
  constraint tenants_name_key UNIQUE (name),
  constraint tenants_on_lease_expiry_check CHECK ((on_lease_expiry = ANY (ARRAY['RECLAIM'::text, 'HOLD'::text]))),
  constraint tenants_pkey PRIMARY KEY (id),
  constraint tenants_quota_burst_check CHECK ((quota_burst > 0)),
  constraint tenants_quota_concurrent_calls_check CHECK ((quota_concurrent_calls > 0)),
  constraint tenants_quota_declared_namespaces_check CHECK ((quota_declared_namespaces > 0)),
  constraint tenants_quota_live_records_check CHECK ((quota_live_records > 0)),
  constraint tenants_quota_operations_per_second_check CHECK ((quota_operations_per_second > 0)),
  constraint tenants_quota_stored_bytes_check CHECK ((quota_stored_bytes > 0)),
  constraint tenants_reclaim_within_s_check CHECK ((reclaim_within_s > 0)),
  constraint tenants_result_retention_s_check CHECK ((result_retention_s > 0)),
  constraint tenants_weight_check CHECK (((weight >= 1) AND (weight <= 100)))
);

create table usage_hours (
  tenant_id integer not null,
  hour timestamp with time zone not null,
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
  repeat_lateness bigint[] not null,
  late_keys_refused bigint not null default 0,
  late_keys_granted bigint not null default 0,
  without_key_time bigint not null default 0,
  refused_by_rate bigint not null default 0,
  refused_by_concurrency bigint not null default 0,
  refused_by_records bigint not null default 0,
  refused_by_bytes bigint not null default 0,
  would_be_refused bigint not null default 0,
  settled bigint not null default 0,
  constraint usage_hours_pkey PRIMARY KEY (tenant_id, hour, namespace),
  constraint usage_hours_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES tenants(id) ON DELETE CASCADE
) with (fillfactor=50);

create table usage_minutes (
  minute timestamp with time zone not null,
  replica_id uuid not null,
  counts jsonb not null,
  constraint usage_minutes_pkey PRIMARY KEY (minute, replica_id)
);

create table usage_now (
  replica_id uuid not null,
  valid_until timestamp with time zone not null,
  seconds double precision not null,
  counts jsonb not null,
  refused jsonb not null default '{}'::jsonb,
  constraint usage_now_pkey PRIMARY KEY (replica_id)
);

CREATE INDEX api_keys_tenant_id ON public.api_keys USING btree (tenant_id, created_at DESC, id DESC);

CREATE INDEX audit_events_at ON public.audit_events USING btree (at, id);

CREATE INDEX audit_events_tenant ON public.audit_events USING btree (tenant, at, id);

CREATE INDEX audit_events_tenant_id ON public.audit_events USING btree (tenant_id, at, id);

CREATE INDEX console_sessions_actor ON public.console_sessions USING btree (actor, created_at);

CREATE INDEX console_sessions_ends_at ON public.console_sessions USING btree (ends_at);

CREATE INDEX console_sessions_tenant_id ON public.console_sessions USING btree (tenant_id);

CREATE INDEX insight_hours_hour ON public.insight_hours USING btree (timezone('utc'::text, hour));

CREATE INDEX insight_key_days_day ON public.insight_key_days USING btree (timezone('utc'::text, day));

CREATE INDEX insight_late_hours_hour ON public.insight_late_hours USING btree (timezone('utc'::text, hour));

CREATE INDEX insight_sample_shifts_changed_at ON public.insight_sample_shifts USING btree (changed_at, tenant_id, namespace, kind);

CREATE INDEX insight_sampled_keys_keep_until ON public.insight_sampled_keys USING btree (keep_until);

CREATE INDEX namespaces_that_hold ON public.namespaces USING btree (tenant_id) WHERE ((on_lease_expiry = 'HOLD'::text) OR (reclaim_within_s IS NOT NULL));

CREATE INDEX record_jobs_finished ON public.record_jobs USING btree (finished_at) WHERE (finished_at IS NOT NULL);

CREATE INDEX record_jobs_tenant_id ON public.record_jobs USING btree (tenant_id, id DESC);

CREATE INDEX record_jobs_unfinished ON public.record_jobs USING btree (starts_at) WHERE (finished_at IS NULL);

CREATE INDEX record_jobs_unfinished_of_tenant ON public.record_jobs USING btree (tenant_id, id) WHERE (finished_at IS NULL);

CREATE INDEX records_ambiguous_from ON public.records USING btree (tenant_id, ambiguous_from, namespace, key) WHERE (ambiguous_from IS NOT NULL);

CREATE INDEX records_sweep_at ON public.records USING btree (sweep_at);

CREATE INDEX tenant_totals_count_due_at ON public.tenant_totals USING btree (count_due_at);

CREATE INDEX usage_hours_hour ON public.usage_hours USING btree (timezone('utc'::text, hour));
