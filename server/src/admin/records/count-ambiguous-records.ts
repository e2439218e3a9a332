import { create } from "@bufbuild/protobuf";
import { isOutdated } from "../../access/authority.ts";
import type { Call } from "../../access/call.ts";
import { nowBy } from "../../database/now-by.ts";
import type { Runner } from "../../database/pool.ts";
import type { DatabaseClock } from "../../domain/database-clock.ts";
import { MAX_CHECKPOINT_NAME_BYTES, MAX_OWNER_BYTES } from "../../domain/limits.ts";
import { isExpired } from "../../domain/operation.ts";
import { Violations } from "../../domain/violations.ts";
import {
  type CountAmbiguousRecordsRequest,
  CountAmbiguousRecordsResponseSchema,
  type ResolveAmbiguousRecordsRequest,
} from "../../gen/onceward/v1/tenant_admin_pb.ts";
import { HELD_FROM, isHeld } from "../../records/engine/record-sql.ts";
import type { AmbiguousFilter } from "../jobs/record-job.ts";
import { administeredPart } from "../own-tenant.ts";
import type { TenantRpc } from "../services.ts";
import { type AmbiguousCursor, BEFORE_ALL_AMBIGUOUS } from "./find-ambiguous.ts";
import type { RecordFilter } from "./find-records.ts";

/** Counts the ambiguous records that match. */
export const countAmbiguousRecords: TenantRpc<"countAmbiguousRecords"> = async (request, call, parts) => {
  const { pool, databaseClock } = parts;
  const violations = new Violations();
  const { range } = parseRange(request, call, violations);
  violations.throwIfAny();
  const { matching, isLowerBound } = await countAll(pool.of(call), range, call, databaseClock);
  return create(CountAmbiguousRecordsResponseSchema, { ambiguous: BigInt(matching), isLowerBound });
};

/** Parses which ambiguous records are meant. Adds a violation for everything that is malformed. @throws Refusal NAMESPACE_DENIED. */
export function parseRange(
  request: CountAmbiguousRecordsRequest | ResolveAmbiguousRecordsRequest,
  call: Call,
  violations: Violations,
) {
  const { namespace, owner, checkpoint, leaseExpiredBefore } = request;
  const tenant = administeredPart(call, namespace, violations);
  violations.text("owner", owner, { maxBytes: MAX_OWNER_BYTES });
  violations.text("checkpoint", checkpoint, { maxBytes: MAX_CHECKPOINT_NAME_BYTES });
  const leaseExpiredBeforeMs = violations.timestampMs("lease_expired_before", leaseExpiredBefore);
  const which = { owner, checkpoint, leaseExpiredBeforeMs };
  return { tenant, range: { tenantId: tenant.id, namespace: namespace || undefined, ...which } };
}

/** The count stops this long before the call's deadline, so that its answer arrives in time. */
const REPLY_MARGIN_MS = 1000;
/** The count is for people, who wait no longer than this, even with a later deadline. */
const MAX_COUNT_MS = 20_000;

/**
 * Counts the records of a range until the call's time is up. Returns also the filter that selects the counted records later, and
 * none that became ambiguous in between.
 *
 * @throws Refusal as for a new call, if the call's principal has expired.
 */
export async function countAll(
  runner: Runner,
  range: AmbiguousRange,
  asked: Call,
  databaseClock: Pick<DatabaseClock, "latestMs">,
) {
  let call = asked;
  const atMs = Math.min(call.atMs - REPLY_MARGIN_MS, performance.now() + MAX_COUNT_MS);
  const { owner, checkpoint } = range;
  let which: AmbiguousFilter | undefined;
  let behind: AmbiguousCursor | undefined;
  for (let matching = 0; ; ) {
    const counted = await countMatching(runner, { ...range, ...which }, behind, databaseClock.latestMs());
    matching += counted.matching;
    which ??= {
      owner,
      checkpoint,
      leaseExpiredBeforeMs: Math.min(range.leaseExpiredBeforeMs ?? counted.nowMs, counted.nowMs),
    };
    behind = counted.next;
    if (behind === undefined) return { matching, isLowerBound: false, which };
    if (isExpired({ atMs, cancelled: call.cancelled })) return { matching, isLowerBound: true, which };
    if (isOutdated(call)) call = await call.again();
  }
}

/** Which ambiguous records of a tenant to count. */
export type AmbiguousRange = Pick<
  RecordFilter,
  "tenantId" | "namespace" | "owner" | "checkpoint" | "leaseExpiredBeforeMs"
>;

/** Rows that one statement examines: some tens of milliseconds. */
const MAX_EXAMINED_ROWS = 5000;

/**
 * Counts by the previous clock. It also bounds the ends of leases: a job that resolves the counted
 * records begins when the clock is right again, and must not reach those that became ambiguous after the count.
 */
const countMatchingRows = {
  name: "count_matching_ambiguous",
  text: `
with examined as materialized (
  select r.ambiguous_from, r.namespace, r.key,
         r.expires_at > ${nowBy("$9")}
           and ${isHeld(nowBy("$9"), "$9")}
           and ${HELD_FROM} < coalesce(to_timestamp($6::float8 / 1000), 'infinity')
           and ($5::text is null or r.namespace = $5::text)
           and ($7::text = '' or r.owner = $7::text)
           and ($8::text = '' or coalesce(r.checkpoint_name, '') = $8::text) as wanted
    from records r
   where r.tenant_id = $1::int
     and r.ambiguous_from <= ${nowBy("$9")}
     and r.ambiguous_from < coalesce(to_timestamp($6::float8 / 1000), 'infinity')
     and (r.ambiguous_from, r.namespace, r.key) > ($2::timestamptz, $3::text, $4::text)
   order by r.ambiguous_from, r.namespace, r.key
   limit ${MAX_EXAMINED_ROWS}
), last as (
  select to_jsonb(ambiguous_from) #>> '{}' as since, namespace, key
    from examined
   order by ambiguous_from desc, namespace desc, key desc
   limit 1
)
select (select count(*) from examined)::int as examined,
       (select count(*) from examined where wanted)::int as matching,
       (select row_to_json(last) from last) as last,
       extract(epoch from ${nowBy("$9")}) * 1000 as "nowMs"`,
};

interface Row {
  readonly examined: number;
  readonly matching: number;
  readonly last: AmbiguousCursor | null;
  readonly nowMs: number;
}

/**
 * Counts the ambiguous records of a range that match, among MAX_EXAMINED_ROWS ambiguous records behind a position.
 *
 * @param latestMs as DatabaseClock: a record is ambiguous from the end of its lease until that of its retention by the
 * previous clock.
 */
export async function countMatching(
  runner: Runner,
  range: AmbiguousRange,
  behind: AmbiguousCursor = BEFORE_ALL_AMBIGUOUS,
  latestMs?: number,
) {
  const [row] = await runner.run<Row>(countMatchingRows, [
    range.tenantId,
    behind.since,
    behind.namespace,
    behind.key,
    range.namespace ?? null,
    range.leaseExpiredBeforeMs ?? null,
    range.owner,
    range.checkpoint,
    latestMs ?? null,
  ]);
  if (row === undefined) throw new Error("a count returned no row");
  const { examined, matching, last, nowMs } = row;
  return {
    matching,
    /** The database's clock at the statement, by the previous clock if it was set, in milliseconds since the Unix epoch. */
    nowMs,
    /** The next count begins after this position; undefined: there are no more records. */
    next: examined === MAX_EXAMINED_ROWS ? (last ?? undefined) : undefined,
  };
}
