import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import { withoutValues } from "./sql-text.ts";

/** Statements can be long, and the beginning shows which one it is. */
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
       extract(epoch from clock_timestamp() - coalesce(a.xact_start, a.query_start, a.backend_start))::int as age_s
  from unnest(pg_blocking_pids($1::int)) as b (pid)
  left join pg_stat_activity a on a.pid = b.pid
 order by age_s desc nulls last
 limit 5`;

/**
 * Returns one line about the transactions that a backend waits for: process id, age, and statement without
 * its values. Undefined if it waits for none.
 */
async function findBlockers(client: pg.Client, pid: number): Promise<string | undefined> {
  const { rows } = await client.query<Blocker>(FIND_BLOCKERS, [pid]);
  return rows.length === 0 ? undefined : rows.map(describeBlocker).join("; ");
}

function describeBlocker({ pid, age_s, state, query }: Blocker): string {
  if (pid === 0) return "a prepared transaction (pg_prepared_xacts)";
  const shown = withoutValues(query ?? "").slice(0, SHOWN_CHARACTERS);
  return `pid ${pid}, ${age_s ?? "?"} s old, ${state ?? "unknown state"}: ${shown}`;
}

/**
 * How long the statements of a transaction wait for locks, together. Claims wait behind a lock that is waited
 * for, and give up after 1 s (the pool's lock_timeout).
 */
const LOCK_BUDGET_MS = 400;
/** The claims that waited have ended before the next attempt. */
const FIRST_PAUSE_MS = 1000;
const MAX_PAUSE_MS = 15_000;
/** Longer than a transaction is left open by accident and noticed; a deployment waits for the command. */
const GIVE_UP_AFTER_MS = 20 * 60_000;
/** How often the blockers of an attempt are looked at: several times within its budget. */
const LOOK_MS = 50;
/**
 * A statement that blocks no one may wait for long; it says for whom after this pause, and then after doubled
 * ones.
 */
const FIRST_REPORT_MS = 1000;
const MAX_REPORT_MS = 60_000;

/** lock_not_available; deadlock_detected. */
const LOCK_CONFLICTS = ["55P03", "40P01"];

/** Two connections: one that migrates, and one that looks for what it waits for. */
export interface MigrationConnections {
  readonly client: pg.Client;
  readonly watcher: pg.Client;
  /** The backend of `client`. */
  readonly pid: number;
  /** Receives what the migration waits for. */
  readonly report: (line: string) => void;
}

/**
 * Runs statements in one transaction that waits for locks for at most LOCK_BUDGET_MS, and again after a pause
 * until it gets them.
 *
 * @param name of the migration.
 * @throws Error that names the blockers after GIVE_UP_AFTER_MS.
 */
export async function runInTransaction(
  connections: MigrationConnections,
  name: string,
  statements: readonly string[],
): Promise<void> {
  const startedAtMs = performance.now();
  for (const pauseMs of doubledMs(FIRST_PAUSE_MS, MAX_PAUSE_MS)) {
    const { failure, blockers } = await attempt(connections, statements);
    if (failure === undefined) return;
    if (!isLockConflict(failure)) throw failure;
    const waited = `${name} waits for a lock of ${blockers}`;
    if (performance.now() - startedAtMs > GIVE_UP_AFTER_MS)
      throw new Error(`${waited}. End it and run migrate again: earlier migrations are done.`, {
        cause: failure,
      });
    connections.report(`${waited}. Claims do not wait; the next attempt is in ${pauseMs / 1000} s.`);
    await delay(pauseMs);
  }
}

async function attempt(
  { client, watcher, pid }: MigrationConnections,
  statements: readonly string[],
): Promise<{ readonly failure: unknown; readonly blockers: string }> {
  let blockers = "a transaction that has ended since";
  const failure = await whileLooking(
    transact(client, statements).then(
      () => undefined,
      (error: unknown) => error,
    ),
    doubledMs(LOOK_MS, LOOK_MS),
    async () => {
      blockers = (await findBlockers(watcher, pid)) ?? blockers;
    },
  );
  return { failure, blockers };
}

async function transact(client: pg.Client, statements: readonly string[]): Promise<void> {
  const startedAtMs = performance.now();
  await client.query("begin");
  try {
    for (const statement of statements) {
      const leftMs = Math.max(1, Math.round(LOCK_BUDGET_MS - (performance.now() - startedAtMs)));
      await client.query(`set local lock_timeout = ${leftMs}`);
      await client.query(statement);
    }
    await client.query("commit");
  } catch (error) {
    await client.query("rollback");
    throw error;
  }
}

/**
 * Runs a statement outside of a transaction, as `create index concurrently` needs. It waits for as long as it
 * takes: it must be of a kind that nothing waits behind (decision 0020).
 */
export async function runByItself(
  { client, watcher, pid, report }: MigrationConnections,
  name: string,
  statement: string,
): Promise<void> {
  await whileLooking(client.query(statement), doubledMs(FIRST_REPORT_MS, MAX_REPORT_MS), async () => {
    const blockers = await findBlockers(watcher, pid);
    if (blockers !== undefined) report(`${name} waits for the end of ${blockers}. Claims do not wait.`);
  });
}

/** Yields pauses, each twice as long as the one before, up to a maximum. */
function* doubledMs(firstMs: number, maxMs: number): Generator<number, never> {
  for (let ms = firstMs; ; ms = Math.min(2 * ms, maxMs)) yield ms;
}

/** Calls `look` after each of the pauses until `work` is settled; returns as `work`. */
async function whileLooking<Result>(
  work: Promise<Result>,
  pausesMs: Iterable<number>,
  look: () => Promise<void>,
): Promise<Result> {
  const ended = new AbortController();
  const looking = (async () => {
    for (const pauseMs of pausesMs) {
      await delay(pauseMs, undefined, { signal: ended.signal });
      await look();
    }
  })();
  // It ends by the signal, or by a failure to look, which must not end the work.
  looking.catch(() => {});
  try {
    return await work;
  } finally {
    ended.abort();
    await looking.catch(() => {});
  }
}

function isLockConflict(error: unknown): boolean {
  return error instanceof pg.DatabaseError && LOCK_CONFLICTS.includes(error.code ?? "");
}
