-- Up Migration

-- Whether keys that are older than key_retention are refused, and what the earlier policies leave behind: when
-- key_retention was lengthened, what it was before, and since when late keys are refused
-- (server/decisions/0024-late-keys.md). A replica of an older version leaves the columns unset, and grants late keys.
alter table tenants
  add column late_keys text check (late_keys in ('RUN', 'REFUSE', 'REQUIRE_TIME')),
  add column retention_lengthened_at timestamptz,
  add column retention_before_s int,
  add column late_keys_refused_since timestamptz;
alter table namespaces
  add column late_keys text check (late_keys in ('RUN', 'REFUSE', 'REQUIRE_TIME')),
  add column retention_lengthened_at timestamptz,
  add column retention_before_s int,
  add column late_keys_refused_since timestamptz;

alter table usage_hours
  add column late_keys_refused bigint not null default 0,
  add column late_keys_granted bigint not null default 0,
  add column without_key_time bigint not null default 0;
