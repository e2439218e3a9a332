import type { TestDatabase } from "./database.ts";

/** The id of the tenant with the many rows. */
export const CROWDED_TENANT = 1;
/** Returns a key of the crowded tenant in the namespace `charges`; `n` starts at 1. */
export const crowdedKey = (n: number) => `key-${n}`;

/** Numbers of the keys whose payload is too large to be read together with other records. */
export const LARGE_KEYS = [9, 19, 29, 39] as const;

/**
 * Fills every growing table with `rows` rows of one tenant, or of as many tenants. All records are due for
 * the sweep at the same time, as if they had been postponed or re-stamped together; the retention of one in
 * ten has ended, and one in ten is ambiguous.
 */
export async function fillTables(database: TestDatabase, rows: number): Promise<void> {
  for (const statement of FILLINGS) await database.query(statement, [rows]);
}

const FILLINGS = [
  `insert into tenants (name, quota_live_records) select 'tenant-' || n, 1000 from generate_series(1, $1::int) n`,
  `insert into namespaces (tenant_id, name) select 1, 'namespace-' || n from generate_series(1, $1::int) n`,
  `insert into api_keys (id, tenant_id, role, digest)
   select 'key-' || n, 1, 'CALLER', decode(repeat('00', 32), 'hex') from generate_series(1, $1::int) n`,
  `insert into console_sessions (digest, installation_id, tenant_id, actor, key_digest, last_used_at, ends_at)
   select sha256(convert_to(n::text, 'utf8')), i.id, 1, 'key-' || n, sha256(''), now() - interval '2 minutes',
          now() + n * interval '1 second'
     from generate_series(1, $1::int) n, installation i`,
  `insert into usage_hours (tenant_id, hour, namespace, repeat_lateness)
   select 1, date_trunc('hour', now()) - n / 1000 * interval '1 hour', 'namespace-' || n, '{0}'
     from generate_series(1, $1::int) n`,
  `insert into insight_hours (tenant_id, namespace, hour, retention_s, claims, first_claims, buckets, repeats)
   select 1, 'charges', date_trunc('hour', now()) - n * interval '1 hour', 60, 1, 1, '{3}', '{1}'
     from generate_series(1, $1::int) n`,
  `insert into insight_late_hours (tenant_id, namespace, hour, retention_s, shift, buckets, repeats, squares)
   select 1, 'charges', date_trunc('hour', now()) - n * interval '1 hour', 60, 0, '{3}', '{1}', '{1}'
     from generate_series(1, $1::int) n`,
  `insert into insight_sample_shifts (tenant_id, namespace, kind, held, since)
   select 1, 'namespace-' || n, case n % 2 when 0 then 'key' else 'fingerprint' end, 1, now() from generate_series(1, $1::int) n
   union all select 1, 'charges', kind, $1, now() from unnest(array['key', 'fingerprint']) kind`,
  `insert into insight_sampled_keys (tenant_id, namespace, kind, key_hash, fingerprint_hash, depth, first_claimed_at, ended_at, keep_until)
   select 1, 'charges', 'key', decode(md5(n::text), 'hex'), '', n % 4, now() - interval '2 hours', now() - interval '1 hour', now()
     from generate_series(1, $1::int) n
   union all
   select 1, 'charges', 'fingerprint', decode(md5(n::text), 'hex'), decode(md5((n / 2)::text), 'hex'), n % 4,
          now() - n * interval '1 second', null, now()
     from generate_series(1, $1::int) n`,
  `insert into insight_key_days
   select 1, 'namespace-' || n % 100, date_trunc('day', now()) - n / 100 * interval '1 day', 1, 1, 1, 1, 1, 1
     from generate_series(1, $1::int) n`,
  `insert into key_histories
   select 1, n, 'charges', decode(md5(n::text), 'hex'), 1, 0, 0, 0, 0, 0, 0, now(), now(), '[]'
     from generate_series(1, $1::int) n`,
  `insert into record_jobs (tenant_id, namespace, kind, terms, starts_at)
   select n, 'charges', 'FORGET', '{}', now() from generate_series(1, $1::int) n`,
  `insert into audit_events (tenant, tenant_id, actor, action, target, outcome, request_id)
   select 'tenant-1', 1, 'key:1', 'UpdateTenant', 'tenant-1', 'DONE', 'call-' || n from generate_series(1, $1::int) n`,
  `insert into records (tenant_id, namespace, key, fencing_token, state, attempt, holds_on_lease_expiry,
     accepts_ambiguous, lease_ms, key_retention_s, result_retention_s, failure_retention_s, first_claimed_at,
     claimed_at, lease_expires_at, expires_at, sweep_at, claim_id, owner)
   select 1, 'charges', 'key-' || n, 1, 1, 1, n % 10 = 6, false, 30000, 60, 60, 60, now(), now(),
          now() - interval '1 hour',
          now() + case when n % 10 = 0 then interval '-1 hour' else interval '1 hour' end,
          now() - interval '1 hour', '', ''
     from generate_series(1, $1::int) n`,
  `update records set state = 2, settled_at = now(), result_kind = 1, result_digest = '\\x00',
          result_expires_at = expires_at, result_payload = convert_to(repeat('x', 70000), 'utf8')
    where $1::int > 0 and key in (${LARGE_KEYS.map((n) => `'${crowdedKey(n)}'`).join(", ")})`,
];
