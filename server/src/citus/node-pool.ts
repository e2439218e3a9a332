import type pg from "pg";
import type { BoundStatement, OpenedPool, Pool, PoolOptions } from "../database/pool.ts";
import { RolledBack, requireTimeToResend } from "../database/statement-errors.ts";
import type { ShardNode } from "./shard-map.ts";
import { isOnShard, type ShardStatement } from "./shard-statement.ts";

/**
 * Connections of a replica to a node: two round trips of batches are in flight at most (`shards.ts`), and statements that
 * are sent again, each alone, need others.
 */
const MAX_CONNECTIONS = 4;

export interface NodePoolOptions {
  /** Returns the database URL with the current password. */
  readonly databaseUrl: () => string;
  /** Opens another pool, which reports to the replica's metrics. */
  readonly openPool: (options: Omit<PoolOptions, "onConnected">) => OpenedPool;
}

/**
 * Opens a pool for statements on the tables of shards that lie on a node.
 *
 * The user and options of the coordinator's database are those of the node, too.
 */
export function openNodePool({ databaseUrl, openPool }: NodePoolOptions, node: ShardNode): Pool {
  return joinStatements(
    openPool({
      databaseUrl: () => nodeUrl(databaseUrl(), node),
      size: MAX_CONNECTIONS,
      throughPgBouncer: false,
      onShards: true,
    }),
  );
}

/** Returns the URL of the same database on a node. A host that begins with "/" is the directory of a socket. */
export function nodeUrl(databaseUrl: string, { host, port }: ShardNode): string {
  const url = new URL(databaseUrl);
  url.searchParams.delete("host");
  url.searchParams.delete("port");
  if (host.startsWith("/")) url.searchParams.set("host", host);
  else url.hostname = host;
  url.port = String(port);
  return url.href;
}

interface Waiting extends BoundStatement {
  readonly statement: ShardStatement;
  readonly sentAtMs: number;
  readonly resolve: (rows: pg.QueryResultRow[]) => void;
  readonly reject: (error: unknown) => void;
}

type Outcome = PromiseSettledResult<pg.QueryResultRow[]>;

/**
 * Returns a pool that sends the statements of one turn of the event loop together, if they are for the tables of different
 * shards: in one round trip and with one commit, because statements for a shard hold few records each.
 *
 * A statement settles as if it had been sent alone, except that a lock keeps the others of its round trip waiting, too.
 */
export function joinStatements(pool: OpenedPool): Pool {
  let waiting: Waiting[] = [];

  function sendAll(): void {
    const all = waiting;
    waiting = [];
    for (const group of groupByShard(all)) {
      if (group.length === 1) group.forEach(sendAlone);
      else void send(group);
    }
  }

  async function send(group: readonly Waiting[]): Promise<void> {
    try {
      const settled = await pool.runTogether(group);
      group.forEach((each, index) => {
        settle(each, settled[index] as Outcome);
      });
    } catch (error) {
      if (error instanceof RolledBack) rejectOne(group, error);
      else for (const { reject } of group) reject(error);
    }
  }

  /** Nothing of the group had an effect: rejects the statement that was refused, and sends the others again. */
  function rejectOne(group: readonly Waiting[], { refused, cause }: RolledBack): void {
    group.forEach((each, index) => {
      if (index === refused) each.reject(cause);
      else sendAgain(each, cause);
    });
  }

  function sendAgain(each: Waiting, cause: unknown): void {
    try {
      requireTimeToResend(each.sentAtMs, cause);
      sendAlone(each);
    } catch (error) {
      each.reject(error);
    }
  }

  function sendAlone({ statement, parameters, operations, resolve, reject }: Waiting): void {
    pool.run(statement, parameters, operations).then(resolve, reject);
  }

  return {
    run(statement, parameters, operations = 1) {
      if (!isOnShard(statement)) return pool.run(statement, parameters, operations);
      return new Promise<never[]>((resolve, reject) => {
        if (waiting.length === 0) setImmediate(sendAll);
        const sentAtMs = performance.now();
        waiting.push({
          statement,
          sentAtMs,
          parameters,
          operations,
          resolve: resolve as Waiting["resolve"],
          reject,
        });
      });
    },
    transaction: pool.transaction,
    load: pool.load,
    close: pool.close,
  };
}

function settle({ resolve, reject }: Waiting, outcome: Outcome): void {
  if (outcome.status === "fulfilled") resolve(outcome.value);
  else reject(outcome.reason);
}

/**
 * Returns groups with one statement of a shard at most, in the order of the shards. A statement locks records in the order of
 * their keys; so no two round trips lock records in different orders, and wait for each other.
 */
function groupByShard(statements: readonly Waiting[]): readonly (readonly Waiting[])[] {
  const groups: Map<number, Waiting>[] = [];
  for (const each of statements) {
    const { shard } = each.statement;
    const free = groups.find((group) => !group.has(shard));
    if (free === undefined) groups.push(new Map([[shard, each]]));
    else free.set(shard, each);
  }
  return groups.map((group) => [...group.values()].sort((a, b) => a.statement.shard - b.statement.shard));
}
