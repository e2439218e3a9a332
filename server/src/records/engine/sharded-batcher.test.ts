import { expect, test } from "vitest";
import type { Pool, Runner } from "../../database/pool.ts";
import type { Deadline } from "../../domain/operation.ts";
import { createShardedBatcher, type ShardedBatcherOptions } from "./sharded-batcher.ts";
import type { Shards } from "./shards.ts";
import { createTurns } from "./turns.ts";

const NO_DEADLINE: Deadline = { atMs: Number.POSITIVE_INFINITY, cancelled: false };

/** A statement that was sent. The test ends it. */
interface Sent {
  readonly keys: readonly string[];
  readonly end: () => void;
}

/**
 * Returns a batcher over shards that are named by the first letter of a key. The node of shards "a" and "b" is 1,
 * that of "c" is 2; each has one statement in flight.
 */
function newBatcher(options: Partial<ShardedBatcherOptions<string, string>> = {}) {
  const sent: Sent[] = [];
  const turns = new Map([1, 2].map((node) => [node, createTurns({ width: 1 })]));
  const shardIds = new Map<string, { readonly id: number }>();
  const shards: Pick<Shards, "count" | "of" | "turnsOf" | "runnerOn"> = {
    count: 3,
    of(key) {
      const letter = key.charAt(0);
      const shard = shardIds.get(letter) ?? { id: letter.charCodeAt(0) };
      shardIds.set(letter, shard);
      return shard;
    },
    turnsOf: ({ id }) => turns.get(id === "c".charCodeAt(0) ? 2 : 1) as ReturnType<typeof createTurns>,
    runnerOn: () => (() => Promise.resolve([])) as Runner["run"],
  };
  const batcher = createShardedBatcher<string, string>(
    { pool: {} as Pool, shards: shards as Shards },
    {
      nameOf: (key) => key,
      keyOf: (key) => key,
      maxInFlight: 3,
      execute: (_run, keys) =>
        new Promise((resolve) => {
          sent.push({ keys, end: () => resolve(keys.map((key) => `row of ${key}`)) });
        }),
      ...options,
    },
  );
  return { batcher, sent };
}

/** Waits for a turn of the event loop, in which everything that is ready is sent. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

test("a statement holds operations of one shard, and each operation gets its own row", async () => {
  const { batcher, sent } = newBatcher();
  const all = batcher.submitAll(["c1", "a1", "b1", "a2"], NO_DEADLINE);
  for (let ended = 0; ended < 3; ended++) {
    await expect.poll(() => sent.length).toBeGreaterThan(ended);
    sent[ended]?.end();
  }
  expect(await all).toEqual(["row of c1", "row of a1", "row of b1", "row of a2"]);
  expect(sent.map(({ keys }) => keys.join()).sort()).toEqual(["a1,a2", "b1", "c1"]);
});

test("a node that hangs delays the operations of its own shards alone", async () => {
  const { batcher, sent } = newBatcher();
  const hanging = ["a1", "b1"].map((key) => batcher.submit(key, NO_DEADLINE));
  await turn();
  const others = ["c1", "c2"].map((key) => batcher.submit(key, NO_DEADLINE));
  await turn();
  await turn();
  expect(sent.map(({ keys }) => keys)).toEqual([["a1"], ["c1", "c2"]]);
  sent[1]?.end();
  expect(await Promise.all(others)).toEqual(["row of c1", "row of c2"]);
  sent[0]?.end();
  await expect.poll(() => sent.length).toBe(3);
  sent[2]?.end();
  expect(await Promise.all(hanging)).toEqual(["row of a1", "row of b1"]);
});

test("the shards of a node take turns, in the order in which they asked", async () => {
  const { batcher, sent } = newBatcher();
  const all = [batcher.submit("a1", NO_DEADLINE), batcher.submit("b1", NO_DEADLINE)];
  await turn();
  all.push(batcher.submit("a2", NO_DEADLINE));
  await turn();
  await turn();
  for (let ended = 0; ended < 3; ended++) {
    await expect.poll(() => sent.length).toBeGreaterThan(ended);
    sent[ended]?.end();
  }
  await Promise.all(all);
  expect(sent.map(({ keys }) => keys.join())).toEqual(["a1", "b1", "a2"]);
});

test("the rows of a call share one converter across shards", async () => {
  let converters = 0;
  const { batcher } = newBatcher({
    execute: (_run, keys) => Promise.resolve(keys),
    createRowConverter() {
      let rows = 0;
      const number = ++converters;
      return (row) => `${row}, row ${++rows} of call ${number}`;
    },
  });
  const rows = await batcher.submitAll(["a1", "c1"], NO_DEADLINE);
  expect([...rows].sort()).toEqual(["a1, row 1 of call 1", "c1, row 2 of call 1"]);
});

test("without shards, operations on all keys share a statement", async () => {
  const statements: string[][] = [];
  const batcher = createShardedBatcher<string, string>(
    { pool: { run: (() => Promise.resolve([])) as Runner["run"] } as unknown as Pool },
    {
      nameOf: (key) => key,
      keyOf: (key) => key,
      maxInFlight: 1,
      execute(_run, keys) {
        statements.push([...keys]);
        return Promise.resolve(keys);
      },
    },
  );
  await batcher.submitAll(["a1", "b1", "c1"], NO_DEADLINE);
  expect(statements).toEqual([["a1", "b1", "c1"]]);
});
