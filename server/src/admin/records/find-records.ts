import { nowBy } from "../../database/now-by.ts";
import type { Runner } from "../../database/pool.ts";
import { listedRecord, RECORD_SELECT, type RecordRow, STATE } from "../../records/engine/record-row.ts";
import { HELD_FROM, isHeld } from "../../records/engine/record-sql.ts";

/** A position in a tenant's records, which are ordered by namespace, then key, both by bytes. */
export interface RecordCursor {
  readonly namespace: string;
  readonly key: string;
}

/** Which of a tenant's records to list. Times are milliseconds since the Unix epoch. */
export interface RecordFilter {
  readonly tenantId: number;
  /** Undefined: any. */
  readonly namespace: string | undefined;
  readonly state: "inProgress" | "completed" | "released" | "ambiguous" | undefined;
  /** Empty: any. */
  readonly keyPrefix: string;
  /** The exact key. Empty: any. With it, no other field but the namespace is set. */
  readonly key: string;
  readonly claimedAfterMs?: number | undefined;
  readonly claimedBeforeMs?: number | undefined;
  /** Empty: any. */
  readonly owner: string;
  /** Undefined: any. */
  readonly fingerprint?: Uint8Array | undefined;
  readonly leaseExpiredBeforeMs?: number | undefined;
  /** The name of the last checkpoint. Empty: any. */
  readonly checkpoint: string;
  /** The job that resolved one of the record's attempts. Undefined: any, or none. */
  readonly recordJob?: bigint | undefined;
}

/** Returns the part of `records.past_attempts` that a record of the filter has; null: any. */
export function keptAttemptOf({ recordJob }: Pick<RecordFilter, "recordJob">): string | null {
  return recordJob === undefined ? null : JSON.stringify([{ job: `${recordJob}` }]);
}

/** Maximum rows that one statement examines: some tens of milliseconds, even if none of them matches. */
export const MAX_EXAMINED = 5000;

/** The numbers by which a filter names states: those of STATE, and one for a state that no row holds. */
const FILTER_STATE = { ...STATE, ambiguous: 4 } as const;

/**
 * Examines a range of the primary key, and returns the rows that match the filter. A forgotten row, or one
 * whose retention has ended, is not a record. The last examined row is returned even if it does not match, so
 * that the next search can begin after it.
 */
const scanRecords = {
  name: "scan_records",
  text: `
with examined as materialized (
  select r.state <> ${STATE.forgotten}
           and r.expires_at > ${nowBy("$15")}
           and starts_with(r.key, $6::text)
           and r.claimed_at >= coalesce(to_timestamp($7::float8 / 1000), '-infinity')
           and r.claimed_at < coalesce(to_timestamp($8::float8 / 1000), 'infinity')
           and ($11::text = '' or r.owner = $11::text)
           and ($12::bytea is null or r.fingerprint = $12::bytea)
           and case derived.state when ${FILTER_STATE.ambiguous} then ${HELD_FROM} else r.lease_expires_at end
                 < coalesce(to_timestamp($13::float8 / 1000), 'infinity')
           and ($14::text = '' or coalesce(r.checkpoint_name, '') = $14::text)
           and coalesce(r.past_attempts @> $16::jsonb, $16::jsonb is null)
           and coalesce($9::int, derived.state) = derived.state as wanted,
         ${RECORD_SELECT},
         null::bytea as checkpoint_state, null::text as result_metadata, null::bytea as result_payload
    from records r
   cross join lateral (
     select case when r.state = ${STATE.inProgress} and r.lease_expires_at <= now() and ${isHeld("now()", "$15")}
                 then ${FILTER_STATE.ambiguous} else r.state end as state
   ) derived
   where r.tenant_id = $1::int
     and (r.namespace, r.key) >= ($2::text, $3::text)
     and (r.namespace, r.key) < ($4::text, $5::text)
   order by r.namespace, r.key
   limit ${MAX_EXAMINED}
)
(select *, (select count(*) from examined)::int as rows_examined
   from examined where wanted order by namespace, key limit $10::int)
union all
(select *, (select count(*) from examined)::int
   from (select * from examined order by namespace desc, key desc limit 1) last where not wanted)
order by namespace, key`,
};

/** A row that a statement on a range of records returns. */
export interface ExaminedRow extends RecordRow {
  readonly wanted: boolean;
  readonly rows_examined: number;
}

/** Returns the rows that match, and the row after which the next search begins; undefined: there are no more. */
export function pageOf<Row extends ExaminedRow>(rows: readonly Row[], limit: number, maxExamined: number) {
  const wanted = rows.filter((row) => row.wanted);
  const isFull = wanted.length === limit;
  const hasMore = isFull || rows[0]?.rows_examined === maxExamined;
  return { wanted, last: hasMore ? (isFull ? wanted : rows).at(-1) : undefined };
}

/**
 * Returns the first records from a position on that match, up to `limit`, among at most MAX_EXAMINED rows.
 *
 * @param latestMs as DatabaseClock: a record is listed until its retention ends by the previous clock.
 */
export async function findRecords(
  runner: Runner,
  filter: RecordFilter,
  from: RecordCursor,
  limit: number,
  latestMs?: number,
) {
  const until = endOf(filter);
  const rows = await runner.run<ExaminedRow>(scanRecords, [
    filter.tenantId,
    from.namespace,
    from.key,
    until.namespace,
    until.key,
    filter.keyPrefix,
    filter.claimedAfterMs ?? null,
    filter.claimedBeforeMs ?? null,
    filter.state === undefined ? null : FILTER_STATE[filter.state],
    limit,
    filter.owner,
    filter.fingerprint ?? null,
    filter.leaseExpiredBeforeMs ?? null,
    filter.checkpoint,
    latestMs ?? null,
    keptAttemptOf(filter),
  ]);
  const { wanted, last } = pageOf(rows, limit, MAX_EXAMINED);
  return {
    /** Without payloads, results' metadata and the states of checkpoints. */
    items: wanted.map((row) => listedRecord(row, latestMs)),
    /** Where the next search begins; undefined: there are no more records. */
    next: last && cursorBehind(last),
  };
}

/** The fields of a filter that limit the range of keys. */
type KeyRange = Pick<RecordFilter, "namespace" | "keyPrefix" | "key">;

/** Returns the position of the first record that may match. */
export function startOf({ namespace, keyPrefix, key }: KeyRange): RecordCursor {
  return namespace === undefined ? { namespace: "", key: "" } : { namespace, key: key || keyPrefix };
}

/**
 * Lower than every character that a key or a namespace may contain: sorts between a text and all longer ones.
 */
const LOWEST = "\u0001";
/** Higher than every character of a namespace's name, and so than every namespace. */
export const HIGHEST = "~";

/** Returns the first position after a record. */
export function cursorBehind({ namespace, key }: RecordCursor): RecordCursor {
  return { namespace, key: key + LOWEST };
}

/** Returns the first position after every record that may match. */
export function endOf({ namespace, keyPrefix, key }: KeyRange): RecordCursor {
  if (namespace === undefined) return { namespace: HIGHEST, key: "" };
  if (key !== "") return cursorBehind({ namespace, key });
  const behind = behindPrefix(keyPrefix);
  return behind === undefined ? { namespace: namespace + LOWEST, key: "" } : { namespace, key: behind };
}

const LAST_CODE_POINT = 0x10ffff;
const FIRST_SURROGATE = 0xd800;
const BEHIND_SURROGATES = 0xe000;

/**
 * Returns the lowest text above all that begin with a prefix, if there is one. UTF-8 sorts as code points.
 */
function behindPrefix(prefix: string): string | undefined {
  const points = Array.from(prefix, (character) => character.codePointAt(0) ?? 0);
  for (;;) {
    const last = points.pop();
    if (last === undefined) return undefined;
    if (last === LAST_CODE_POINT) continue;
    const next = last + 1 === FIRST_SURROGATE ? BEHIND_SURROGATES : last + 1;
    return String.fromCodePoint(...points, next);
  }
}
