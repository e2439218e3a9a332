import type { Runner } from "./pool.ts";

/** Of the newest claims, as far as an index tells without reading the table: those that retention ends last. */
const SAMPLE = 1000;

const sampleNewest = {
  name: "sample_newest_claims",
  text: `
select coalesce(max(fencing_token), 0)::text as token,
       coalesce(date_part('epoch', max(claimed_at) - now()), 0) as ahead_s
  from (select fencing_token, claimed_at from records order by sweep_at desc limit ${SAMPLE}) newest`,
};

/** What the newest of a sample of records say. */
export interface NewestClaims {
  /** The highest fencing token; 0 if there is no record. */
  readonly token: bigint;
  /** By how many seconds the newest claim lies ahead of the database's clock; negative: behind it, as it must. */
  readonly aheadS: number;
}

/** Looks at a sample of the newest records: one short statement, whatever the table holds. */
export async function sampleNewestClaims(runner: Runner): Promise<NewestClaims> {
  const [row] = await runner.run<{ token: string; ahead_s: number }>(sampleNewest, []);
  if (row === undefined) throw new Error("an aggregate answers one row");
  return { token: BigInt(row.token), aheadS: row.ahead_s };
}

/** Records a statement: well within its timeout, also where each lies on a page of its own that has to be read. */
const PAGE_ROWS = 10_000;

const readTokenPage = {
  name: "read_token_page",
  text: `
with page as materialized (
  select tenant_id, namespace, key, fencing_token
    from records
   where (tenant_id, namespace, key) > ($1::int, $2::text, $3::text)
   order by tenant_id, namespace, key
   limit ${PAGE_ROWS}
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

/** The highest fencing token of all records, 0 if there is none: reads the whole table, in short statements. */
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
