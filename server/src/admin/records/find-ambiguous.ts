import { nowBy } from "../../database/now-by.ts";
import type { Runner } from "../../database/pool.ts";
import { listedRecord, RECORD_SELECT } from "../../records/engine/record-row.ts";
import { HELD_FROM, isHeld } from "../../records/engine/record-sql.ts";
import { type ExaminedRow, keptAttemptOf, pageOf, type RecordFilter } from "./find-records.ts";

/**
 * A position in a tenant's ambiguous records, which are ordered by the end of their lease, then by namespace and
 * key: the position of a record.
 */
export interface AmbiguousCursor {
  /** When the lease ended, as Postgres writes it, because milliseconds would make several instants equal. */
  readonly since: string;
  readonly namespace: string;
  readonly key: string;
}

/** The position before all ambiguous records. */
export const BEFORE_ALL_AMBIGUOUS: AmbiguousCursor = { since: "-infinity", namespace: "", key: "" };

/** Maximum rows that one statement examines, as of `scan_records`. */
const MAX_EXAMINED_AMBIGUOUS = 5000;

/**
 * Examines a range of the index of ambiguous records, and returns the rows that match the filter. The last
 * examined row is returned even if it does not match, so that the next search can begin after it.
 */
const scanAmbiguousRecords = {
  name: "scan_ambiguous_records",
  text: `
with examined as materialized (
  select r.expires_at > ${nowBy("$14")}
           and ${isHeld("now()", "$14")}
           and ${HELD_FROM} < coalesce(to_timestamp($9::float8 / 1000), 'infinity')
           and ($5::text is null or r.namespace = $5::text)
           and starts_with(r.key, $6::text)
           and r.claimed_at >= coalesce(to_timestamp($7::float8 / 1000), '-infinity')
           and r.claimed_at < coalesce(to_timestamp($8::float8 / 1000), 'infinity')
           and ($11::text = '' or r.owner = $11::text)
           and ($12::bytea is null or r.fingerprint = $12::bytea)
           and ($13::text = '' or coalesce(r.checkpoint_name, '') = $13::text)
           and coalesce(r.past_attempts @> $15::jsonb, $15::jsonb is null) as wanted,
         r.ambiguous_from,
         to_jsonb(r.ambiguous_from) #>> '{}' as since,
         ${RECORD_SELECT},
         null::bytea as checkpoint_state, null::text as result_metadata, null::bytea as result_payload
    from records r
   where r.tenant_id = $1::int
     and r.ambiguous_from <= now()
     and r.ambiguous_from < coalesce(to_timestamp($9::float8 / 1000), 'infinity')
     and (r.ambiguous_from, r.namespace, r.key) > ($2::timestamptz, $3::text, $4::text)
   order by r.ambiguous_from, r.namespace, r.key
   limit least(${MAX_EXAMINED_AMBIGUOUS}, $16::int)
)
(select *, (select count(*) from examined)::int as rows_examined
   from examined where wanted order by ambiguous_from, namespace, key limit $10::int)
union all
(select *, (select count(*) from examined)::int
   from (select * from examined order by ambiguous_from desc, namespace desc, key desc limit 1) last
  where not wanted)
order by ambiguous_from, namespace, key`,
};

type AmbiguousRow = ExaminedRow & Pick<AmbiguousCursor, "since">;

/**
 * Returns the first ambiguous records behind a position that match, the oldest first, up to `limit`, among at
 * most `maxExamined` rows.
 *
 * @param latestMs as DatabaseClock: a record is listed until its retention ends by the previous clock.
 */
export async function findAmbiguous(
  runner: Runner,
  filter: Omit<RecordFilter, "state" | "key">,
  behind: AmbiguousCursor,
  limit: number,
  latestMs?: number,
  maxExamined = MAX_EXAMINED_AMBIGUOUS,
) {
  const rows = await runner.run<AmbiguousRow>(scanAmbiguousRecords, [
    filter.tenantId,
    behind.since,
    behind.namespace,
    behind.key,
    filter.namespace ?? null,
    filter.keyPrefix,
    filter.claimedAfterMs ?? null,
    filter.claimedBeforeMs ?? null,
    filter.leaseExpiredBeforeMs ?? null,
    limit,
    filter.owner,
    filter.fingerprint ?? null,
    filter.checkpoint,
    latestMs ?? null,
    keptAttemptOf(filter),
    maxExamined,
  ]);
  const { wanted, last } = pageOf(rows, limit, maxExamined);
  return {
    /** Each with its position. Without payloads, results' metadata and the states of checkpoints. */
    found: wanted.map((row) => ({ record: listedRecord(row, latestMs), at: cursorAt(row) })),
    /** The next search begins after this position; undefined: there are no more records. */
    next: last && cursorAt(last),
  };
}

function cursorAt({ since, namespace, key }: AmbiguousRow): AmbiguousCursor {
  return { since, namespace, key };
}
