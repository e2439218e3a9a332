import { create } from "@bufbuild/protobuf";
import { nowBy } from "../../database/now-by.ts";
import type { Runner } from "../../database/pool.ts";
import { fromRow, type RowOf } from "../../database/rows.ts";
import { timestamp, Violations } from "../../domain/violations.ts";
import { CountRecordsResponseSchema } from "../../gen/onceward/v1/tenant_admin_pb.ts";
import { STATE } from "../../records/engine/record-row.ts";
import { isHeld } from "../../records/engine/record-sql.ts";
import { administeredNamespace } from "../own-tenant.ts";
import { scanUntil } from "../pages.ts";
import type { TenantRpc } from "../services.ts";
import type { RecordPage } from "./record-page.ts";

/** Counts a namespace's records by their state. */
export const countRecords: TenantRpc<"countRecords"> = async ({ namespace, pageToken }, call, parts) => {
  const { pool, pageTokens, databaseClock } = parts;
  const violations = new Violations();
  violations.name("namespace", namespace);
  const { id: tenantId } = administeredNamespace(call, namespace);
  const scope = [tenantId, "CountRecords", namespace];
  const [afterKey = ""] = pageTokens.read(scope, pageToken, violations) ?? [];
  violations.throwIfAny();

  const { items, next } = await scanUntil(Number.POSITIVE_INFINITY, afterKey, async (after: string) => {
    const range = { tenantId, namespace, afterKey: after };
    const counted = await countPage(pool.of(call), range, databaseClock.latestMs());
    return { items: [counted.counts], next: counted.next };
  });
  const { oldestAmbiguousSinceMs: since, ...counts } = items.reduce(sum);
  return create(CountRecordsResponseSchema, {
    inProgress: BigInt(counts.inProgress),
    lapsed: BigInt(counts.lapsed),
    completed: BigInt(counts.completed),
    released: BigInt(counts.released),
    ambiguous: BigInt(counts.ambiguous),
    oldestAmbiguousSince: since === undefined ? undefined : timestamp(since),
    ...(next !== undefined && { nextPageToken: pageTokens.write(scope, [next]) }),
  });
};

/** Counts of a range of a namespace's records. */
export interface RecordCounts {
  readonly inProgress: number;
  readonly lapsed: number;
  readonly completed: number;
  readonly released: number;
  readonly ambiguous: number;
  /**
   * When the lease of the longest ambiguous record expired, in milliseconds since the Unix epoch; undefined: none is
   * ambiguous.
   */
  readonly oldestAmbiguousSinceMs: number | undefined;
}

/** Rows that one statement examines: some tens of milliseconds. */
export const MAX_COUNTED = 20_000;

/** Counts rows in the order of the primary key. A forgotten row, or one whose retention has ended, is not counted. */
const countStates = {
  name: "count_records_by_state",
  text: `
with examined as materialized (
  select r.key, r.lease_expires_at,
         case when r.expires_at <= ${nowBy("$4")} or r.state = ${STATE.forgotten} then 'ended'
              when r.state = ${STATE.completed} then 'completed'
              when r.state = ${STATE.released} then 'released'
              when r.lease_expires_at > now() then 'inProgress'
              when ${isHeld("now()", "$4")} then 'ambiguous'
              else 'lapsed' end as phase
    from records r
   where r.tenant_id = $1::int
     and r.namespace = $2::text
     and (r.namespace, r.key) > ($2::text, $3::text)
   order by r.namespace, r.key
   limit ${MAX_COUNTED}
)
select count(*)::int as examined,
       max(key) as "lastKey",
       (count(*) filter (where phase = 'inProgress'))::int as "inProgress",
       (count(*) filter (where phase = 'lapsed'))::int as lapsed,
       (count(*) filter (where phase = 'completed'))::int as completed,
       (count(*) filter (where phase = 'released'))::int as released,
       (count(*) filter (where phase = 'ambiguous'))::int as ambiguous,
       extract(epoch from min(lease_expires_at) filter (where phase = 'ambiguous')) * 1000 as "oldestAmbiguousSinceMs"
  from examined`,
};

type Row = RowOf<RecordCounts> & { readonly examined: number; readonly lastKey: string | null };

/**
 * Counts at most MAX_COUNTED records of a namespace in the order of their keys, from the first one after `afterKey`. `next` is the
 * key after which the next range begins; undefined: none is left.
 *
 * @param latestMs as DatabaseClock: a record counts until its retention ends by the previous clock.
 */
export async function countPage(
  runner: Runner,
  { tenantId, namespace, afterKey }: Omit<RecordPage, "limit">,
  latestMs?: number,
): Promise<{ readonly counts: RecordCounts; readonly next: string | undefined }> {
  const [row] = await runner.run<Row>(countStates, [tenantId, namespace, afterKey, latestMs ?? null]);
  if (row === undefined) throw new Error("a count returned no row");
  const { examined, lastKey, ...counts } = row;
  return {
    counts: fromRow<RecordCounts>(counts),
    next: examined === MAX_COUNTED ? (lastKey ?? undefined) : undefined,
  };
}

function sum(one: RecordCounts, other: RecordCounts): RecordCounts {
  const since = [one.oldestAmbiguousSinceMs, other.oldestAmbiguousSinceMs].filter((ms) => ms !== undefined);
  return {
    inProgress: one.inProgress + other.inProgress,
    lapsed: one.lapsed + other.lapsed,
    completed: one.completed + other.completed,
    released: one.released + other.released,
    ambiguous: one.ambiguous + other.ambiguous,
    oldestAmbiguousSinceMs: since.length === 0 ? undefined : Math.min(...since),
  };
}
