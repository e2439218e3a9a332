import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { distributeRecords } from "../../server/src/citus/distribute-records.ts";
import { nodeUrl, openNodePool } from "../../server/src/citus/node-pool.ts";
import { isMoved } from "../../server/src/citus/shard-guard.ts";
import type { ShardNode } from "../../server/src/citus/shard-map.ts";
import { openShards } from "../../server/src/citus/shards.ts";
import {
  type OpenedPool,
  openPool,
  type Pool,
  type PoolOptions,
  type Statement,
} from "../../server/src/database/pool.ts";
import { type Deadline, Rejected } from "../../server/src/domain/operation.ts";
import { RESEND_WITHIN_MS } from "../../server/src/domain/statement-times.ts";
import { findResolved } from "../../server/src/records/claim/find-resolved.ts";
import { UNLIMITED } from "../../server/src/records/engine/fair-queue.ts";
import type { Shards } from "../../server/src/records/engine/shards.ts";
import { createRecordStore, type RecordStore } from "../../server/src/records/record-store.ts";
import { digestResult } from "../../server/src/records/result-digest.ts";
import { claimCommand, DONE } from "../support/calls/domain.ts";
import { copyAlone } from "../support/database/citus.ts";
import { openConnection, usePool } from "../support/database/connections.ts";
import { openDatabase } from "../support/database/database.ts";
import { useDatabase } from "../support/database/use-database.ts";

const NO_DEADLINE: Deadline = { atMs: Number.POSITIVE_INFINITY, cancelled: false };
const NAMESPACE = "charges";

interface Sent {
  readonly statement: Statement;
  readonly parameters: readonly unknown[];
  /** Undefined: the coordinator. */
  readonly node: ShardNode | undefined;
}

const database = useDatabase();
const pool = usePool(database, 12);

/**
 * Opens a store, and records the statements on records that it sends.
 *
 * @param refusesAfterMs by how much the process' clock advances when a node refuses a round trip of statements.
 */
async function openStore({ refusesAfterMs = 0 } = {}) {
  const sent: Sent[] = [];
  const byCoordinator: string[] = [];
  const away: ShardNode[] = [];
  const recorded = (of: Pool, node?: ShardNode): Pool => ({
    ...of,
    run(statement, parameters, operations) {
      if (operations !== undefined) sent.push({ statement, parameters, node });
      if (node === undefined) byCoordinator.push(statement.name);
      return of.run(statement, parameters, operations);
    },
  });
  const passTime = (error: unknown) => {
    const now = performance.now.bind(performance);
    if (refusesAfterMs > 0) vi.spyOn(performance, "now").mockImplementation(() => now() + refusesAfterMs);
    throw error;
  };
  const openLatePool = (options: PoolOptions): OpenedPool => {
    const opened = openPool(options);
    return {
      ...opened,
      run: (...statement) => opened.run<never>(...statement).catch(passTime),
      runTogether: (statements) => opened.runTogether(statements).catch(passTime),
    };
  };
  const shards = (await openShards(recorded(pool), {
    onUngrouped: (reason) => expect.unreachable(reason),
    onUnreachable: (node) => away.push(node),
    openNode: (node) =>
      recorded(openNodePool({ databaseUrl: () => database.url, openPool: openLatePool }, node), node),
  })) as Shards;
  return {
    shards,
    sent,
    byCoordinator,
    away,
    store: createRecordStore(recorded(pool), UNLIMITED, { shards }),
  };
}

const idOf = (key: string) => ({ tenantId: 1, namespace: NAMESPACE, key });
const keysOf = (name: string, count: number) => Array.from({ length: count }, (_, i) => `${name}-${i}`);

/** Claims keys. Returns the token of each granted key, and the reasons of the refused ones. */
async function claim(store: RecordStore, keys: readonly string[]) {
  const settled = await store.claim(
    keys.map((key) => claimCommand({ id: idOf(key) })),
    NO_DEADLINE,
  );
  const tokens = new Map<string, bigint>();
  const refused = new Map<string, unknown>();
  settled.forEach((outcome, i) => {
    const key = keys[i] as string;
    if (outcome instanceof Rejected) refused.set(key, outcome.error);
    else if (outcome.kind === "claimed") tokens.set(key, outcome.fencingToken);
  });
  return { tokens, refused };
}

/** Returns the shard of each key, as Citus says. */
async function shardsOf(keys: readonly string[]): Promise<ReadonlyMap<string, number>> {
  const rows = await database.query<{ key: string; shard: number }>(
    `select key, get_shard_id_for_distribution_column('records', key)::int as shard from unnest($1::text[]) as key`,
    [keys],
  );
  return new Map(rows.map(({ key, shard }) => [key, shard]));
}

/** Divides the first shard in two on its node. */
async function divideShard(mode: "block_writes" | "force_logical"): Promise<void> {
  const [shard] = await database.query<{ id: number; middle: string; node: number }>(
    `select s.shardid::int as id, n.nodeid as node,
            ((s.shardminvalue::bigint + s.shardmaxvalue::bigint) / 2)::text as middle
       from pg_dist_shard s join pg_dist_placement p using (shardid) join pg_dist_node n using (groupid)
      where s.logicalrelid = 'records'::regclass order by s.shardminvalue::int limit 1`,
  );
  await copyAlone(database.url, () =>
    database.query(
      "select citus_split_shard_by_split_points($1, array[$2], array[$3, $3]::int[], $4::citus.shard_transfer_mode)",
      [shard?.id, shard?.middle, shard?.node, mode],
    ),
  );
}

/** Returns the texts of an array in the binary format. */
function textsOf(array: Buffer): string[] {
  const texts: string[] = [];
  for (let at = 20; at < array.length; ) {
    const size = array.readInt32BE(at);
    texts.push(array.toString("utf8", at + 4, at + 4 + size));
    at += 4 + size;
  }
  return texts;
}

describe("statements on shards", () => {
  let store: RecordStore;
  let shards: Shards;
  let sent: Sent[];

  beforeAll(async () => {
    ({ store, shards, sent } = await openStore());
  });

  afterAll(() => shards?.close());

  test("each statement of a batch of claims touches one shard, and tokens rise", async () => {
    const [before] = await database.query<{ token: string }>(
      "select (date_part('epoch', clock_timestamp()) * 1000000)::bigint::text as token",
    );
    const keys = keysOf("one-shard", 200);
    const { tokens, refused } = await claim(store, keys);
    expect(refused).toEqual(new Map());
    expect(tokens.size).toBe(keys.length);
    for (const token of tokens.values()) expect(token).toBeGreaterThan(BigInt(before?.token ?? ""));
    const shardOf = await shardsOf(keys);
    const claims = sent.filter(({ statement }) => statement.name === "claim_records");
    const touched = claims.map(({ parameters }) => [
      ...new Set(textsOf(parameters[2] as Buffer).map((key) => shardOf.get(key))),
    ]);
    expect(touched.every((all) => all.length === 1)).toBe(true);
    expect(new Set(touched.flat())).toEqual(new Set(shardOf.values()));
    expect(claims.every(({ node }) => node !== undefined)).toBe(true);
  });

  test("a record is settled, read and taken over with a higher token", async () => {
    const [key] = keysOf("life", 1) as [string];
    const first = (await claim(store, [key])).tokens.get(key) as bigint;
    const [extended] = await store.extendLease(
      [{ id: idOf(key), fencingToken: first, leaseMs: 60_000, checkpoint: undefined, begin: false }],
      NO_DEADLINE,
    );
    expect(extended).toMatchObject({ kind: "extended" });
    await store.release(
      [{ id: idOf(key), fencingToken: first, reason: "retry", giveBack: false }],
      NO_DEADLINE,
    );
    const second = (await claim(store, [key])).tokens.get(key) as bigint;
    expect(second).toBeGreaterThan(first);
    const [record] = await store.read([idOf(key)], NO_DEADLINE);
    expect(record).toMatchObject({ attempt: 2, fencingToken: second });
  });

  /** Claims keys while Citus changes where shards are, and for a while after it. Expects that no granted claim is lost. */
  async function expectNothingLostDuring(name: string, change: () => Promise<unknown>): Promise<void> {
    const granted: string[] = [];
    let changed = false;
    let round = 0;
    const load = async () => {
      for (;;) {
        const { tokens } = await claim(store, keysOf(`${name}-${round++}`, 20));
        granted.push(...tokens.keys());
        if (changed) return;
      }
    };
    const loads = [load(), load(), load()];
    await change();
    const before = granted.length;
    // Claims after the change reach the old table of a shard, until the map is read again.
    await expect.poll(() => granted.length).toBeGreaterThan(before + 200);
    changed = true;
    await Promise.all(loads);
    const after = await claim(store, keysOf(`after-${name}`, 40));
    expect(after.refused).toEqual(new Map());
    granted.push(...after.tokens.keys());
    const rows = await database.query<{ key: string }>(
      "select key from records where key = any($1::text[])",
      [granted],
    );
    expect(rows.length).toBe(granted.length);
  }

  test("no granted claim is lost while a shard moves to another node", async () => {
    const [shard] = await database.query<{
      id: number;
      from: string;
      from_port: number;
      to: string;
      to_port: number;
    }>(
      `select s.shardid::int as id, n.nodename as "from", n.nodeport as from_port, o.nodename as "to", o.nodeport as to_port
         from pg_dist_shard s join pg_dist_placement p using (shardid) join pg_dist_node n using (groupid)
         join pg_dist_node o on o.groupid not in (0, n.groupid)
        where s.logicalrelid = 'records'::regclass order by s.shardid limit 1`,
    );
    if (shard === undefined) throw new Error("there is no shard");
    await expectNothingLostDuring("moved", () =>
      database.query(
        "select citus_move_shard_placement($1, $2, $3, $4, $5, shard_transfer_mode := 'block_writes')",
        [shard.id, shard.from, shard.from_port, shard.to, shard.to_port],
      ),
    );
  });

  test.each(["block_writes", "force_logical"] as const)(
    "no granted claim is lost while a shard is divided in two by %s",
    async (mode) => {
      const count = shards.count;
      await expectNothingLostDuring(`divided-${mode}`, () => divideShard(mode));
      expect(shards.count).toBe(count + 1);
    },
  );
});

test("a replica that has not read the shards again serves all keys after a shard was divided", async () => {
  const { store, shards, sent } = await openStore();
  onTestFinished(() => shards.close());
  const count = shards.count;
  await divideShard("block_writes");
  expect(shards.count).toBe(count);
  const { tokens, refused } = await claim(store, keysOf("after-division", 100));
  expect(refused).toEqual(new Map());
  expect(tokens.size).toBe(100);
  expect(shards.count).toBe(count + 1);
  sent.length = 0;
  expect((await claim(store, keysOf("on-halves", 100))).tokens.size).toBe(100);
  expect(sent.every(({ node }) => node !== undefined)).toBe(true);
});

test("a statement that a node refuses too late is not sent again, nor are its neighbours", async () => {
  const { store, shards, byCoordinator } = await openStore({ refusesAfterMs: RESEND_WITHIN_MS + 1 });
  onTestFinished(() => void vi.restoreAllMocks());
  onTestFinished(() => shards.close());
  await divideShard("block_writes");
  const shardOf = await shardsOf(keysOf("too-late", 100));
  // The first statement of a turn is sent alone: not that of the divided shard, whose halves are new.
  const keys = [...shardOf.keys()].sort((a, b) => (shardOf.get(a) ?? 0) - (shardOf.get(b) ?? 0));
  const { tokens, refused } = await claim(store, keys);
  for (const error of refused.values()) expect(error).toMatchObject({ reason: "DATABASE_UNAVAILABLE" });
  expect(tokens.size + refused.size).toBe(keys.length);
  // The halves of the divided shard, and at least one other.
  expect(new Set([...refused.keys()].map((key) => shardOf.get(key))).size).toBeGreaterThan(2);
  expect(byCoordinator).not.toContain("claim_records");
  expect(await database.query("select key from records where key = any($1::text[])", [keys])).toHaveLength(
    tokens.size,
  );
  // The replica has read the shards again.
  expect((await claim(store, [...refused.keys()])).tokens.size).toBe(refused.size);
});

test("a division renumbers the guard's lock: Citus waits for no statement of a later shard", async () => {
  const [last] = await database.query<{ id: number; host: string; port: number }>(
    `select s.shardid::int as id, n.nodename as host, n.nodeport as port
       from pg_dist_shard s join pg_dist_placement p using (shardid) join pg_dist_node n using (groupid)
      where s.logicalrelid = 'records'::regclass order by s.shardminvalue::int desc limit 1`,
  );
  if (last === undefined) throw new Error("there is no shard");
  const url = nodeUrl(database.url, last);
  const [statement, mover] = [await openConnection({ url }), await openConnection({ url })];
  await statement.query("begin");
  await statement.query("select onceward_hold_shard($1, 0)", [last.id]);
  await mover.query("set lock_timeout = 100");
  // As citus_move_shard_placement locks a shard before its last step.
  const lock = () =>
    mover.query("select lock_shard_metadata(7 /* ExclusiveLock */, array[$1::bigint])", [last.id]);
  await expect(lock()).rejects.toThrow("lock timeout");
  await divideShard("block_writes");
  await lock();
});

test("of Citus' internal errors, only that of the shard's lock means it has moved", async () => {
  const refusal = async (name: string, text: string) => {
    const refused = pool.run({ name, text }, []);
    await expect(refused).rejects.toMatchObject({ sqlState: "XX000" });
    return refused.catch((error: unknown) => error);
  };
  const unknownShard = await refusal("hold_unknown_shard", "select onceward_hold_shard(7, 0)");
  expect(isMoved(unknownShard, 7)).toBe(true);
  expect(isMoved(unknownShard, 70)).toBe(false);
  const unknownLock = await refusal("take_unknown_lock", "select lock_shard_metadata(99, array[7::bigint])");
  expect(isMoved(unknownLock, 7)).toBe(false);
});

test("a statement that is sent straight to a node reads and writes the table of one shard alone", async () => {
  const { store, shards, sent } = await openStore();
  await claim(store, keysOf("explained", 200));
  const { statement, parameters, node } =
    sent.find(({ statement }) => statement.name === "claim_records") ?? {};
  if (statement === undefined || node === undefined) throw new Error("no statement was sent to a node");
  const worker = openDatabase(nodeUrl(database.url, node));
  const plan = JSON.stringify(
    await worker.query(`explain (format json) ${statement.text}`, parameters ?? []),
  );
  await worker.close();
  await shards.close();
  expect(plan).not.toContain("Citus");
  const tables = [...plan.matchAll(/"Relation Name":"(\w+)"/g)].map(([, table]) => table);
  expect(new Set(tables)).toEqual(new Set([statement.preparedName?.replace("claim_records", "records")]));
});

test("the coordinator does nothing for claims", async () => {
  const { store, shards, byCoordinator } = await openStore();
  onTestFinished(() => shards.close());
  byCoordinator.length = 0;
  const rounds = 10;
  for (let round = 0; round < rounds; round++) {
    const { tokens } = await claim(store, keysOf(`alone-${round}`, 50));
    expect(tokens.size).toBe(50);
  }
  expect(byCoordinator).toEqual([]);
});

test("while a node is away, exactly the keys of its shards are refused, until it is back", async () => {
  const { store, shards, away: told } = await openStore();
  onTestFinished(() => shards.close());
  const keys = keysOf("away", 100);
  const shardOf = await shardsOf(keys);
  const [away] = await database.query<{ id: number; host: string; port: number; shards: number[] }>(
    `select n.nodeid as id, n.nodename as host, n.nodeport as port, array_agg(s.shardid::int) as shards
       from pg_dist_node n join pg_dist_placement p using (groupid) join pg_dist_shard s using (shardid)
      where s.logicalrelid = 'records'::regclass group by 1, 2, 3 order by 1 limit 1`,
  );
  if (away === undefined) throw new Error("no node holds shards");
  // Nothing listens on port 1.
  const moveTo = (host: string, port: number) =>
    database.query("update pg_dist_node set nodename = $2, nodeport = $3 where nodeid = $1", [
      away.id,
      host,
      port,
    ]);
  onTestFinished(async () => {
    await moveTo(away.host, away.port);
  });
  await moveTo("127.0.0.1", 1);
  await shards.refresh();
  const { tokens, refused } = await claim(store, keys);
  const ofNode = keys.filter((key) => away.shards.includes(shardOf.get(key) as number));
  expect([...refused.keys()].sort()).toEqual(ofNode.sort());
  for (const error of refused.values()) expect(error).toMatchObject({ reason: "DATABASE_UNAVAILABLE" });
  expect(tokens.size).toBe(keys.length - ofNode.length);
  expect(shards.unreachableNodes()).toBe(1);
  expect(told).toMatchObject([{ host: "127.0.0.1", port: 1 }]);
  // Unclaimed keys are resolved, and can be read on the other node alone.
  const waitedFor = [...keys, ...keysOf("unclaimed", 40)];
  const resolved = await findResolved({ pool, shards }, waitedFor.map(idOf));
  const shardOfAll = await shardsOf(waitedFor);
  const isOnNode = (key: string) => away.shards.includes(shardOfAll.get(key) as number);
  expect([...resolved].map((index) => waitedFor[index]).sort()).toEqual(
    waitedFor
      .slice(keys.length)
      .filter((key) => !isOnNode(key))
      .sort(),
  );
  await moveTo(away.host, away.port);
  await shards.refresh();
  expect(shards.unreachableNodes()).toBe(0);
  expect((await claim(store, ofNode)).tokens.size).toBe(ofNode.length);
});

/** Returns the two-phase commits that Citus has recorded on any node, and not forgotten yet. */
async function twoPhaseCommits(): Promise<readonly string[]> {
  const rows = await database.query<{ result: string }>(
    "select result from run_command_on_all_nodes('select string_agg(gid, '' '') from pg_dist_transaction')",
  );
  return rows.flatMap(({ result }) => result.split(" ")).filter((gid) => gid !== "");
}

test("claims, completions, releases and take-overs commit in one phase", async () => {
  const { store, shards } = await openStore();
  onTestFinished(() => shards.close());
  const before = new Set(await twoPhaseCommits());
  const { tokens } = await claim(store, keysOf("one-phase", 100));
  const held = Array.from(tokens, ([key, fencingToken]) => ({ id: idOf(key), fencingToken }));
  const completed = await store.complete(
    held.slice(0, 50).map((each) => ({
      ...each,
      result: DONE,
      resultDigest: digestResult(DONE),
      keyRetentionS: undefined,
    })),
    NO_DEADLINE,
  );
  const released = await store.release(
    held.slice(50).map((each) => ({ ...each, reason: "retry", giveBack: false })),
    NO_DEADLINE,
  );
  const again = await claim(
    store,
    held.slice(50).map(({ id }) => id.key),
  );
  expect(completed.map((each) => !(each instanceof Rejected) && each.kind)).toEqual(
    Array(50).fill("completed"),
  );
  expect(released.map((each) => !(each instanceof Rejected) && each.kind)).toEqual(
    Array(50).fill("released"),
  );
  expect(again.tokens.size).toBe(50);
  expect((await twoPhaseCommits()).filter((gid) => !before.has(gid))).toEqual([]);
});

test("without the function of migrate --citus, statements are not grouped, and why is said", async () => {
  await database.query("drop function onceward_hold_shard(bigint, anyelement)");
  onTestFinished(async () => {
    await distributeRecords(database.url);
  });
  const reasons: string[] = [];
  expect(
    await openShards(pool, {
      onUngrouped: (reason) => reasons.push(reason),
      onUnreachable: () => {},
      openNode: (node) => openNodePool({ databaseUrl: () => database.url, openPool }, node),
    }),
  ).toBeUndefined();
  expect(reasons).toEqual(["a function is missing: run onceward-server migrate --citus"]);
});
