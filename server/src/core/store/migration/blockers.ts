import type pg from "pg";
import { withoutValues } from "./sql-text.ts";

/** Statements can be long, and the beginning tells which one it is. */
const SHOWN_CHARACTERS = 200;

/** A transaction that holds a lock, or waits for one in front. */
interface Blocker {
  /** 0: a prepared transaction, which has no process. */
  readonly pid: number;
  readonly age_s: number | null;
  readonly state: string | null;
  readonly query: string | null;
}

/**
 * The oldest first. Postgres shows the statements of other roles to superusers and members of
 * pg_read_all_stats only.
 */
const FIND_BLOCKERS = `
select distinct b.pid, a.state, left(a.query, 2000) as query,
       date_part('epoch', clock_timestamp() - coalesce(a.xact_start, a.query_start, a.backend_start))::int as age_s
  from unnest(pg_blocking_pids($1::int)) as b (pid)
  left join pg_stat_activity a on a.pid = b.pid
 order by age_s desc nulls last
 limit 5`;

/**
 * Returns one line about the transactions that a backend waits for: process id, age, and statement without
 * its values. Undefined if it waits for none.
 */
export async function findBlockers(client: pg.Client, pid: number): Promise<string | undefined> {
  const { rows } = await client.query<Blocker>(FIND_BLOCKERS, [pid]);
  return rows.length === 0 ? undefined : rows.map(describeBlocker).join("; ");
}

function describeBlocker({ pid, age_s, state, query }: Blocker): string {
  if (pid === 0) return "a prepared transaction (pg_prepared_xacts)";
  const shown = withoutValues(query ?? "").slice(0, SHOWN_CHARACTERS);
  return `pid ${pid}, ${age_s ?? "?"} s old, ${state ?? "unknown state"}: ${shown}`;
}
