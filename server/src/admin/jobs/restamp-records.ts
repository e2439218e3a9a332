import { nowBy } from "../../database/now-by.ts";
import type { Runner } from "../../database/pool.ts";
import { FENCING_MARGIN_MS, RESULT_KIND, STATE } from "../../records/engine/record-row.ts";
import { equalKeys, isHeld } from "../../records/engine/record-sql.ts";
import { type PageOutcome, pageRows, type RecordPage, runOnPage } from "../records/record-page.ts";
import type { ClaimedBefore, RetentionChange } from "./record-job.ts";

/*
 * The statements need a row's new retention 20 times. SQL
 * cannot name it once for `set` and `where` of an update: `from` cannot refer to the updated row, and a query
 * that computes it before the update would need `for update`, which Citus allows for a single key only.
 *
 * Citus accepts a sum of a time and an interval in an update only outside of `case`, and only if no operand is a column or
 * a `case`: hence `coalesce(…, null)`, which changes no value. A `case` may not contain now(), so the moment is joined.
 *
 * Only completed records have cached copies, which are right until they end. Those of a record that was completed after the
 * page was read count as outdated, because the page does not know when they end.
 *
 * Parameters after the page's: the old retention of key, result and failure ($5 to $7), and the new one ($8
 * to $10), in seconds. `restamp_records` also has the parameter of `nowBy` ($11), and the times until when records were
 * claimed that it changes ($12 and $13, ClaimedBefore): a later policy may have stamped later ones.
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
  case when r.state = ${STATE.completed}
       then extract(epoch from r.expires_at - r.settled_at)::int else r.key_retention_s end`;
const NEW_KEY_S = `(${restamped(STAMPED_KEY_S, "$5::int", "$8::int")})`;
const NEW_RESULT_S = `least(${NEW_KEY_S}, ${restamped("r.result_retention_s", "$6::int", "$9::int")})`;
const NEW_FAILURE_S = `least(${NEW_KEY_S}, ${restamped("r.failure_retention_s", "$7::int", "$10::int")})`;

/** Returns when the record ends, or a number of seconds after that. */
function endsAt(afterS: number): string {
  return `greatest(
    coalesce(case when r.state = ${STATE.completed} then r.settled_at else r.claimed_at end, null)
      + coalesce(${NEW_KEY_S} + ${afterS}, null) * interval '1 second',
    coalesce(case when r.state = ${STATE.inProgress} then r.lease_expires_at end, null)
      + ${afterS} * interval '1 second')`;
}
const NEW_EXPIRES_AT = endsAt(0);
/** A result whose retention has ended stays expired, because the sweep may have dropped it. */
const NEW_RESULT_EXPIRES_AT = `
  coalesce(case when r.state <> ${STATE.completed} then null
                when r.result_expires_at <= m.now then r.result_expires_at
                else r.settled_at end, null)
    + coalesce(case when r.result_expires_at <= m.now then 0
                    when r.result_kind = ${RESULT_KIND.success} then ${NEW_RESULT_S}
                    else ${NEW_FAILURE_S} end, null) * interval '1 second'`;

/** Selects the live records of the page whose retention changes. */
const CHANGES = `
      ${equalKeys("r", "p")}
  and r.state <> ${STATE.forgotten}
  and r.expires_at > m.now
  and ((${NEW_EXPIRES_AT}, ${NEW_RESULT_EXPIRES_AT}) is distinct from (r.expires_at, r.result_expires_at)
       or (r.state <> ${STATE.completed}
           and (${NEW_RESULT_S}, ${NEW_FAILURE_S}) is distinct from (r.result_retention_s, r.failure_retention_s)))`;

const restampRecords = {
  name: "restamp_records",
  text: `
with page as materialized (
  ${pageRows(", settled_at, expires_at, result_expires_at")}
), moment as materialized (
  select ${nowBy("$11")} as now
), changed as (
  update records r set
    key_retention_s = ${NEW_KEY_S},
    result_retention_s = ${NEW_RESULT_S},
    failure_retention_s = ${NEW_FAILURE_S},
    expires_at = ${NEW_EXPIRES_AT},
    result_expires_at = ${NEW_RESULT_EXPIRES_AT},
    sweep_at = least(r.sweep_at, ${endsAt(FENCING_MARGIN_MS / 1000)}, ${NEW_RESULT_EXPIRES_AT})
  from page p cross join moment m
  where ${CHANGES}
  and (r.claimed_at <= to_timestamp($12::float8 / 1000)
       or (r.claimed_at > to_timestamp($11::float8 / 1000) and r.claimed_at <= to_timestamp($13::float8 / 1000)))
  returning r.expires_at,
            r.state = ${STATE.completed}
              and (p.settled_at = r.settled_at and p.expires_at <= r.expires_at
                   and p.result_expires_at <= r.result_expires_at) is not true as outdates_copies
)
select (select count(*) from page)::int as examined, (select max(key) from page) as last_key,
       count(*)::int as changed, (count(*) filter (where expires_at <= (select now from moment)))::int as forgotten,
       (count(*) filter (where outdates_copies))::int as outdated_copies
  from changed`,
};

const previewRestamp = {
  name: "preview_restamp",
  text: `
with page as materialized (
  ${pageRows()}
), moment as materialized (
  select now() as now
), changed as (
  select ${NEW_EXPIRES_AT} as expires_at,
         r.state = ${STATE.inProgress} and r.lease_expires_at <= m.now and ${isHeld("m.now", "null")} as is_ambiguous
    from page p cross join moment m cross join records r
   where ${CHANGES}
)
select (select count(*) from page)::int as examined, (select max(key) from page) as last_key,
       count(*)::int as changed, (count(*) filter (where expires_at <= now()))::int as forgotten,
       (count(*) filter (where expires_at <= now() and is_ambiguous))::int as ambiguous_forgotten
  from changed`,
};

/**
 * Changes the retention of a page of records, whose newest claim was granted at an instant or before, from that of an old policy
 * to that of a new one.
 *
 * @param latestMs as DatabaseClock.
 */
export function restampPage(
  runner: Runner,
  page: RecordPage,
  change: RetentionChange,
  { courseMs, shownMs }: ClaimedBefore,
  latestMs?: number,
): Promise<PageOutcome> {
  const parameters = [...changeParameters(change), latestMs ?? null, courseMs, shownMs];
  return runOnPage(runner, restampRecords, page, parameters);
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
