import type { RetentionChange } from "../../domain/retention-change.ts";
import type { Runner } from "../pool.ts";
import { type PageOutcome, type RecordPage, runOnPage } from "./record-page.ts";

/*
 * The only statements on records that are assembled, because they need a row's new retention 20 times. SQL
 * cannot name it once for `set` and `where` of an update: `from` cannot refer to the updated row, and a query
 * that computes it before the update would need `for update`, which Citus allows for a single key only.
 *
 * Parameters behind the page's: the old retention of key, result and failure ($5 to $7), and the new one ($8
 * to $10), in seconds.
 */

/**
 * A record whose retention is as long as the old policy's, or longer, gets the new policy's. A shorter one
 * was asked for by the request and stays, unless the new policy's is still shorter.
 */
function restamped(stampedS: string, oldS: string, newS: string): string {
  return `case when ${stampedS} >= ${oldS} then ${newS} else least(${stampedS}, ${newS}) end`;
}

/**
 * A completion may have shortened the retention of its key, so it follows from the times of a completed
 * record.
 */
const STAMPED_KEY_S = `
  case when r.state = 2 /* completed */
       then date_part('epoch', r.expires_at - r.settled_at)::int else r.key_retention_s end`;
const NEW_KEY_S = `(${restamped(STAMPED_KEY_S, "$5::int", "$8::int")})`;
const NEW_RESULT_S = `least(${NEW_KEY_S}, ${restamped("r.result_retention_s", "$6::int", "$9::int")})`;
const NEW_FAILURE_S = `least(${NEW_KEY_S}, ${restamped("r.failure_retention_s", "$7::int", "$10::int")})`;

const NEW_EXPIRES_AT = `
  case r.state
    when 2 /* completed */ then r.settled_at + ${NEW_KEY_S} * interval '1 second'
    when 1 /* in progress */ then greatest(r.claimed_at + ${NEW_KEY_S} * interval '1 second', r.lease_expires_at)
    else r.claimed_at + ${NEW_KEY_S} * interval '1 second' end`;
/** A result whose retention has ended stays expired, because the sweep may have dropped it. */
const NEW_RESULT_EXPIRES_AT = `
  case when r.state = 2 /* completed */ then
    case when r.result_expires_at <= now() then r.result_expires_at
         else r.settled_at + interval '1 second'
              * case r.result_kind when 1 /* success */ then ${NEW_RESULT_S} else ${NEW_FAILURE_S} end end end`;

/** Selects the live records of the page whose retention changes. */
const CHANGES = `
      r.tenant_id = p.tenant_id
  and r.namespace = p.namespace
  and r.key = p.key
  and r.key >= p.key
  and (p.tenant_id % 1, p.tenant_id % -1) = (0, 0)
  and r.state <> 0 /* forgotten */
  and r.expires_at > now()
  and ((${NEW_EXPIRES_AT}, ${NEW_RESULT_EXPIRES_AT}) is distinct from (r.expires_at, r.result_expires_at)
       or (r.state <> 2 /* completed */
           and (${NEW_RESULT_S}, ${NEW_FAILURE_S}) is distinct from (r.result_retention_s, r.failure_retention_s)))`;

const restampRecords = {
  name: "restamp_records",
  text: `
with page as materialized (
  select tenant_id, namespace, key
    from records
   where tenant_id = $1::int
     and namespace = $2::text
     and key > $3::text
   order by key
   limit $4::int
), changed as (
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
with page as materialized (
  select tenant_id, namespace, key
    from records
   where tenant_id = $1::int
     and namespace = $2::text
     and key > $3::text
   order by key
   limit $4::int
), changed as (
  select ${NEW_EXPIRES_AT} <= now() as forgotten
    from page p, records r
   where ${CHANGES}
)
select (select count(*) from page)::int as examined, (select max(key) from page) as last_key,
       count(*)::int as changed, (count(*) filter (where forgotten))::int as forgotten
  from changed`,
};

/** Changes the retention of a page of records from that of an old policy to that of a new one. */
export function restampPage(runner: Runner, page: RecordPage, change: RetentionChange): Promise<PageOutcome> {
  return runOnPage(runner, restampRecords, page, changeParameters(change));
}

/** Returns what `restampPage` would do. */
export function previewPage(runner: Runner, page: RecordPage, change: RetentionChange): Promise<PageOutcome> {
  return runOnPage(runner, previewRestamp, page, changeParameters(change));
}

function changeParameters({ was, becomes }: RetentionChange): readonly number[] {
  return [was, becomes].flatMap((retention) => [
    retention.keyRetentionS,
    retention.resultRetentionS,
    retention.failureRetentionS,
  ]);
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

/** Returns the tenant's first namespace behind a name that has rows, if there is one. */
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
   and state <> 0 /* forgotten */
   and expires_at > now()
 limit 1`,
};

/** Returns whether a namespace has a record. */
export async function hasLiveRecords(runner: Runner, tenantId: number, namespace: string): Promise<boolean> {
  return (await runner.run(findLiveRecord, [tenantId, namespace])).length > 0;
}
