import type { Runner } from "./pool.ts";

/** Reads 1,000 of the newest claims, approximately: an index finds the rows that are swept last. */
const sampleNewest = {
  name: "sample_newest_claims",
  text: `
select coalesce(max(fencing_token), 0)::text as token,
       coalesce(date_part('epoch', max(claimed_at) - now()), 0) as ahead_s
  from (select fencing_token, claimed_at from records order by sweep_at desc limit 1000) newest`,
};

/** The newest claims in a sample of records. */
export interface NewestClaims {
  /** The highest fencing token; 0 if there is no record. */
  readonly token: bigint;
  /**
   * Seconds by which the newest claim lies ahead of the database's clock; negative, unless the clock was set
   * back.
   */
  readonly aheadS: number;
}

/** Reads a sample of the newest records by one short statement, regardless of the table's size. */
export async function sampleNewestClaims(runner: Runner): Promise<NewestClaims> {
  const [row] = await runner.run<{ token: string; ahead_s: number }>(sampleNewest, []);
  if (row === undefined) throw new Error("sample_newest_claims returned no row");
  return { token: BigInt(row.token), aheadS: row.ahead_s };
}

/**
 * Reads 10,000 rows: well within the statement's timeout, even if each lies on a page that must be read from
 * disk.
 */
const readTokenPage = {
  name: "read_token_page",
  text: `
with page as materialized (
  select tenant_id, namespace, key, fencing_token
    from records
   where (tenant_id, namespace, key) > ($1::int, $2::text, $3::text)
   order by tenant_id, namespace, key
   limit 10000
)
select (select max(fencing_token) from page)::text as token, tenant_id, namespace, key
  from page
 order by tenant_id desc, namespace desc, key desc
 limit 1`,
};

interface PageRow {
  readonly token: string;
  readonly tenant_id: number;
  readonly namespace: string;
  readonly key: string;
}

/** Returns the highest fencing token of all records, or 0. Reads the whole table, in short statements. */
export async function readHighestToken(runner: Runner): Promise<bigint> {
  let highest = 0n;
  let behind: readonly unknown[] = [0, "", ""];
  for (;;) {
    const [last] = await runner.run<PageRow>(readTokenPage, behind);
    if (last === undefined) return highest;
    const token = BigInt(last.token);
    if (token > highest) highest = token;
    behind = [last.tenant_id, last.namespace, last.key];
  }
}
