import type { Runner, Statement } from "../../database/pool.ts";

/** A page of the records of one namespace, ordered by key. */
export interface RecordPage {
  readonly tenantId: number;
  readonly namespace: string;
  /** The page begins after this key. Empty: with the first record. */
  readonly afterKey: string;
  readonly limit: number;
}

/** What a statement did to a page, or would do. */
export interface PageOutcome {
  /** If fewer than the page's limit, the namespace has no more records. */
  readonly examined: number;
  readonly lastKey: string | undefined;
  readonly changed: number;
  /** How many of the changed records are forgotten. */
  readonly forgotten: number;
  /** How many of these are ambiguous; 0 where a statement does not count them. */
  readonly ambiguousForgotten: number;
  /** At most so many cached copies of the changed records are no longer right. */
  readonly outdatedCopies: number;
}

/** What statements on a page return. */
interface PageRow {
  readonly examined: number;
  readonly last_key: string | null;
  readonly changed: number;
  /** Unset: all changed records are forgotten. */
  readonly forgotten?: number;
  readonly ambiguous_forgotten?: number;
  /** Unset: those of all changed records. */
  readonly outdated_copies?: number;
}

/** Returns the query for rows of a page. @param columns of records, beside the key. */
export function pageRows(columns = ""): string {
  return `select tenant_id, namespace, key${columns}
    from records
   where tenant_id = $1::int
     and namespace = $2::text
     and key > $3::text
   order by key
   limit $4::int`;
}

/**
 * Runs a statement whose parameters 1 to 4 name a page: tenant, namespace, key before it, maximum number of
 * records.
 */
export async function runOnPage(
  runner: Runner,
  statement: Statement,
  { tenantId, namespace, afterKey, limit }: RecordPage,
  parameters: readonly unknown[] = [],
): Promise<PageOutcome> {
  const [row] = await runner.run<PageRow>(statement, [tenantId, namespace, afterKey, limit, ...parameters]);
  if (row === undefined) throw new Error(`${statement.name} returned no row`);
  const {
    examined,
    last_key: lastKey,
    changed,
    forgotten = changed,
    ambiguous_forgotten: ambiguousForgotten = 0,
    outdated_copies: outdatedCopies = changed,
  } = row;
  return { examined, lastKey: lastKey ?? undefined, changed, forgotten, ambiguousForgotten, outdatedCopies };
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
