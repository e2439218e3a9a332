import type { Runner } from "../pool.ts";
import { byKey } from "./by-key.ts";
import { PAGE, type PageOutcome, type RecordPage } from "./record-page.ts";

/**
 * What a forgotten row is left as: absent to every reader, its fencing token kept until the sweep, which comes later than
 * any statement can last that drew a token before.
 */
export const FORGOTTEN = `
  state = 0,
  expires_at = now(),
  sweep_at = now() + interval '2 minutes',
  claim_id = '',
  owner = '',
  fingerprint = null,
  checkpoint_name = null,
  checkpoint_state = null,
  settled_at = null,
  release_reason = null,
  result_expires_at = null,
  result_kind = null,
  result_digest = null,
  result_content_type = null,
  result_metadata = null,
  result_payload = null`;

const OF_PAGE = byKey("p");

const forgetRecords = {
  name: "forget_records",
  text: `
with ${PAGE}, forgotten as (
  update records r set ${FORGOTTEN}
  from page p
  where ${OF_PAGE}
    and r.state <> 0
    and r.claimed_at <= to_timestamp($5::float8 / 1000)
  returning 1
)
select (select count(*) from page)::int as examined, (select max(key) from page) as last_key,
       (select count(*) from forgotten)::int as changed`,
};

/** Forgets the records of a page whose newest claim isn't younger than an instant. */
export async function forgetPage(
  runner: Runner,
  page: RecordPage,
  claimedBeforeMs: number,
): Promise<PageOutcome> {
  return outcome(await runner.run<Row>(forgetRecords, [...pageParameters(page), claimedBeforeMs]));
}

const removeRecords = {
  name: "remove_records",
  text: `
with ${PAGE}, removed as (
  delete from records r using page p where ${OF_PAGE} returning 1
)
select (select count(*) from page)::int as examined, (select max(key) from page) as last_key,
       (select count(*) from removed)::int as changed`,
};

/** Removes the rows of a page, tokens and all: of a tenant that can claim no more. */
export async function removePage(runner: Runner, page: RecordPage): Promise<PageOutcome> {
  return outcome(await runner.run<Row>(removeRecords, pageParameters(page)));
}

const raiseGeneration = {
  name: "raise_cache_generation",
  text: `update tenants set cache_generation = cache_generation + 1 where id = $1::int`,
};

/**
 * Makes every copy of the tenant's records unfindable, on every replica within 10 s. Belongs into the transaction of
 * whatever forgets a record or shortens how long it is remembered: server/decisions/0004-what-a-copy-may-answer.md
 */
export async function raiseCacheGeneration(transaction: Runner, tenantId: number): Promise<void> {
  await transaction.run(raiseGeneration, [tenantId]);
}

interface Row {
  readonly examined: number;
  readonly last_key: string | null;
  readonly changed: number;
}

function pageParameters({ tenantId, namespace, afterKey, limit }: RecordPage): readonly unknown[] {
  return [tenantId, namespace, afterKey, limit];
}

function outcome([row]: readonly Row[]): PageOutcome {
  if (row === undefined) throw new Error("a page answered nothing");
  return {
    examined: row.examined,
    changed: row.changed,
    forgotten: row.changed,
    lastKey: row.last_key ?? undefined,
  };
}
