import type { RetentionChange } from "../../domain/retention-change.ts";
import type { Runner } from "../pool.ts";
import { byKey } from "./by-key.ts";
import { PAGE, type PageOutcome, type RecordPage } from "./record-page.ts";

/** The parameters of a change: the retention that was, and the one that is to be. */
const WAS_KEY_S = "$5::int";
const WAS_RESULT_S = "$6::int";
const WAS_FAILURE_S = "$7::int";
const KEY_S = "$8::int";
const RESULT_S = "$9::int";
const FAILURE_S = "$10::int";

/**
 * A record that is remembered for as long as the old policy said, or longer, follows the new one. One that is remembered
 * for less keeps that, because its request asked for it, unless the new policy is shorter still.
 */
function restamped(stampedS: string, wasS: string, becomesS: string): string {
  return `case when ${stampedS} >= ${wasS} then ${becomesS} else least(${stampedS}, ${becomesS}) end`;
}

/** A completion may have asked for less than the claim: what counts is what it got. */
const STAMPED_KEY_S = `
  case when r.state = 2 then date_part('epoch', r.expires_at - r.settled_at)::int else r.key_retention_s end`;
const NEW_KEY_S = `(${restamped(STAMPED_KEY_S, WAS_KEY_S, KEY_S)})`;
const NEW_RESULT_S = `least(${NEW_KEY_S}, ${restamped("r.result_retention_s", WAS_RESULT_S, RESULT_S)})`;
const NEW_FAILURE_S = `least(${NEW_KEY_S}, ${restamped("r.failure_retention_s", WAS_FAILURE_S, FAILURE_S)})`;

const NEW_EXPIRES_AT = `
  case r.state
    when 2 then r.settled_at + ${NEW_KEY_S} * interval '1 second'
    when 1 then greatest(r.claimed_at + ${NEW_KEY_S} * interval '1 second', r.lease_expires_at)
    else r.claimed_at + ${NEW_KEY_S} * interval '1 second' end`;
/** A result that has ended stays ended: the sweep may have dropped it. */
const NEW_RESULT_EXPIRES_AT = `
  case when r.state = 2 then
    case when r.result_expires_at <= now() then r.result_expires_at
         else r.settled_at + interval '1 second'
              * case r.result_kind when 1 then ${NEW_RESULT_S} else ${NEW_FAILURE_S} end end end`;

/** A live record of the page whose retention changes. */
const CHANGES = `
      ${byKey("p")}
  and r.state <> 0
  and r.expires_at > now()
  and ((${NEW_EXPIRES_AT}, ${NEW_RESULT_EXPIRES_AT}) is distinct from (r.expires_at, r.result_expires_at)
       or (r.state <> 2
           and (${NEW_RESULT_S}, ${NEW_FAILURE_S}) is distinct from (r.result_retention_s, r.failure_retention_s)))`;

const restampRecords = {
  name: "restamp_records",
  text: `
with ${PAGE}, changed as (
  update records r set
    key_retention_s = ${NEW_KEY_S},
    result_retention_s = ${NEW_RESULT_S},
    failure_retention_s = ${NEW_FAILURE_S},
    expires_at = ${NEW_EXPIRES_AT},
    result_expires_at = ${NEW_RESULT_EXPIRES_AT},
    sweep_at = least(r.sweep_at, ${NEW_EXPIRES_AT} + interval '2 minutes', ${NEW_RESULT_EXPIRES_AT})
  from page p
  where ${CHANGES}
  returning r.expires_at <= now() as forgotten
)
select (select count(*) from page)::int as examined, (select max(key) from page) as last_key,
       count(*)::int as changed, (count(*) filter (where forgotten))::int as forgotten
  from changed`,
};

const previewRestamp = {
  name: "preview_restamp",
  text: `
with ${PAGE}, changed as (
  select ${NEW_EXPIRES_AT} <= now() as forgotten
    from page p, records r
   where ${CHANGES}
)
select (select count(*) from page)::int as examined, (select max(key) from page) as last_key,
       count(*)::int as changed, (count(*) filter (where forgotten))::int as forgotten
  from changed`,
};

/** Stamps retention anew on a page of records. */
export function restampPage(runner: Runner, page: RecordPage, change: RetentionChange): Promise<PageOutcome> {
  return overPage(runner, restampRecords, page, change);
}

/** Tells what `restampPage` would do. */
export function previewPage(runner: Runner, page: RecordPage, change: RetentionChange): Promise<PageOutcome> {
  return overPage(runner, previewRestamp, page, change);
}

interface Row {
  readonly examined: number;
  readonly last_key: string | null;
  readonly changed: number;
  readonly forgotten: number;
}

async function overPage(
  runner: Runner,
  statement: typeof restampRecords,
  { tenantId, namespace, afterKey, limit }: RecordPage,
  { was, becomes }: RetentionChange,
): Promise<PageOutcome> {
  const [row] = await runner.run<Row>(statement, [
    tenantId,
    namespace,
    afterKey,
    limit,
    ...[was, becomes].flatMap((retention) => [
      retention.keyRetentionS,
      retention.resultRetentionS,
      retention.failureRetentionS,
    ]),
  ]);
  if (row === undefined) throw new Error("a page answered nothing");
  const { examined, changed, forgotten, last_key: lastKey } = row;
  return { examined, changed, forgotten, lastKey: lastKey ?? undefined };
}

const findNextNamespace = {
  name: "find_next_namespace",
  text: `
select namespace
  from records
 where tenant_id = $1::int
   and namespace > $2::text
 order by namespace
 limit 1`,
};

/** The tenant's first namespace behind a name that has rows; undefined: there is none. */
export async function nextNamespace(
  runner: Runner,
  tenantId: number,
  afterNamespace: string,
): Promise<string | undefined> {
  const [row] = await runner.run<{ namespace: string }>(findNextNamespace, [tenantId, afterNamespace]);
  return row?.namespace;
}

const findLiveRecord = {
  name: "find_live_record",
  text: `
select 1
  from records
 where tenant_id = $1::int
   and namespace = $2::text
   and state <> 0
   and expires_at > now()
 limit 1`,
};

/** Whether anything is remembered in a namespace. */
export async function hasLiveRecords(runner: Runner, tenantId: number, namespace: string): Promise<boolean> {
  return (await runner.run(findLiveRecord, [tenantId, namespace])).length > 0;
}
