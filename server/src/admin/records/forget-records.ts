import type { Runner } from "../../database/pool.ts";
import { STATE } from "../../records/engine/record-row.ts";
import { equalKeys, FENCING_MARGIN, HIGHEST_TOKEN } from "../../records/engine/record-sql.ts";
import type { ClaimedBefore } from "../jobs/record-job.ts";
import { type PageOutcome, pageRows, type RecordPage, runOnPage } from "./record-page.ts";

/** What an update of a record sets when its key is forgotten. */
export const FORGET_COLUMNS = `state = ${STATE.forgotten},
    expires_at = now(),
    sweep_at = now() + ${FENCING_MARGIN},
    claim_id = '',
    owner = '',
    fingerprint = null,
    checkpoint_name = null,
    checkpoint_state = null,
    checkpoint_key_id = null,
    settled_at = null,
    release_reason = null,
    result_expires_at = null,
    result_key_id = null,
    result_kind = null,
    result_digest = null,
    result_content_type = null,
    result_metadata = null,
    fencing_token = ${HIGHEST_TOKEN},
    past_attempts = null,
    result_payload = null`;

/**
 * Forgets the records of a page. A forgotten row is absent to every reader. It stays, with its fencing token,
 * until the sweep deletes it, later than any statement that drew a token before can last.
 */
const forgetRecords = {
  name: "forget_records",
  text: `
with page as materialized (
  ${pageRows()}
), forgotten as (
  update records r set
    ${FORGET_COLUMNS}
  from page p
  where ${equalKeys("r", "p")}
    and r.state <> ${STATE.forgotten}
    and (r.claimed_at <= to_timestamp($5::float8 / 1000)
         or (r.claimed_at > to_timestamp($7::float8 / 1000) and r.claimed_at <= to_timestamp($6::float8 / 1000)))
  returning 1
)
select (select count(*) from page)::int as examined, (select max(key) from page) as last_key,
       (select count(*) from forgotten)::int as changed`,
};

/**
 * Forgets the records of a page whose newest claim was granted at an instant or before.
 *
 * @param latestMs as DatabaseClock.
 */
export function forgetPage(
  runner: Runner,
  page: RecordPage,
  { courseMs, shownMs }: ClaimedBefore,
  latestMs?: number,
): Promise<PageOutcome> {
  return runOnPage(runner, forgetRecords, page, [courseMs, shownMs, latestMs ?? null]);
}

const removeRecords = {
  name: "remove_records",
  text: `
with page as materialized (
  ${pageRows()}
), removed as (
  delete from records r
   using page p
   where ${equalKeys("r", "p")}
  returning 1
)
select (select count(*) from page)::int as examined, (select max(key) from page) as last_key,
       (select count(*) from removed)::int as changed`,
};

/** Deletes the rows of a page with their tokens: only for a tenant that can claim no more. */
export function removePage(runner: Runner, page: RecordPage): Promise<PageOutcome> {
  return runOnPage(runner, removeRecords, page);
}

const raiseGeneration = {
  name: "raise_cache_generation",
  text: `update tenants set cache_generation = cache_generation + 1 where id = $1::int`,
};

/**
 * Invalidates every cached copy of the tenant's records, on every replica within 10 s. Must run in the
 * transaction that forgets a record or shortens its retention:
 * server/decisions/0004-what-a-copy-may-answer.md
 */
export async function raiseCacheGeneration(transaction: Runner, tenantId: number): Promise<void> {
  await transaction.run(raiseGeneration, [tenantId]);
}
