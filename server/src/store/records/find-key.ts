import type { LiveRecord } from "../../domain/record.ts";
import type { Runner } from "../pool.ts";
import { parseRecord, type RecordRow } from "./record-row.ts";

/** The records with a key that one statement found. */
export interface FoundOfKey {
  /** By namespace. Without payloads, results' metadata and the states of checkpoints. */
  readonly records: readonly LiveRecord[];
  /** The next search begins behind this namespace; undefined: there are no more. */
  readonly next: string | undefined;
}

/** Maximum namespaces that one statement examines: some tens of milliseconds. The text of the statement holds the number. */
export const MAX_EXAMINED_NAMESPACES = 2000;

/**
 * Finds each namespace by one look at the primary key, as `list_namespaces_in_use`, and the record with the key by another one.
 * Without a record, the only row has the number of examined namespaces and the last one, and no other column.
 */
const lookAtKey = {
  name: "look_at_key",
  text: `
with examined as materialized (
  select u.name from namespaces_in_use($1::int, $2::text, 2000) as u (name)
), last as (
  select count(*)::int as namespaces, max(name collate "C") as last_namespace from examined
)
select last.namespaces, last.last_namespace, found.*
  from last
  left join lateral (
    select r.tenant_id, r.namespace, r.key, r.state, r.attempt, r.holds_on_lease_expiry, r.claim_id, r.owner,
           r.fencing_token::text as fencing_token,
           encode(r.fingerprint, 'hex') as fingerprint,
           date_part('epoch', now()) * 1000 as now_ms,
           date_part('epoch', r.first_claimed_at) * 1000 as first_claimed_at_ms,
           date_part('epoch', r.claimed_at) * 1000 as claimed_at_ms,
           date_part('epoch', r.lease_expires_at) * 1000 as lease_expires_at_ms,
           date_part('epoch', r.lease_expires_at - clock_timestamp()) * 1000 as lease_remaining_ms,
           date_part('epoch', r.settled_at) * 1000 as settled_at_ms,
           date_part('epoch', r.expires_at) * 1000 as expires_at_ms,
           date_part('epoch', r.result_expires_at) * 1000 as result_expires_at_ms,
           r.checkpoint_name, r.release_reason, r.result_kind, r.result_content_type,
           encode(r.result_digest, 'hex') as result_digest,
           null::bytea as checkpoint_state, null::text as result_metadata, null::bytea as result_payload
      from examined e
     cross join lateral (
       select * from records own
        where own.tenant_id = $1::int
          and own.namespace = e.name
          and own.key = $3::text
        limit 1) r
     where r.state <> 0 /* forgotten */
       and r.expires_at > now()
     order by r.namespace
     limit $4::int) found on true
 order by found.namespace`,
};

interface FoundRow extends RecordRow {
  readonly namespaces: number;
  readonly last_namespace: string | null;
}

/**
 * Returns the records of a tenant with exactly this key, up to `limit`, in the first MAX_EXAMINED_NAMESPACES namespaces behind
 * `afterNamespace`.
 */
export async function findKey(
  runner: Runner,
  { tenantId, key }: { readonly tenantId: number; readonly key: string },
  afterNamespace: string,
  limit: number,
): Promise<FoundOfKey> {
  const rows = await runner.run<FoundRow>(lookAtKey, [tenantId, afterNamespace, key, limit]);
  const found = rows.filter((row) => row.namespace !== null);
  const records = found.map((row) => parseRecord(row)).filter((record) => record !== undefined);
  if (found.length === limit) return { records, next: found.at(-1)?.namespace };
  const [first] = rows;
  const wasFull = first?.namespaces === MAX_EXAMINED_NAMESPACES;
  return { records, next: wasFull ? (first.last_namespace ?? undefined) : undefined };
}
