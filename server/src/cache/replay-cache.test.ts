import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { DONE, ID } from "../../../test/helpers/calls/domain.ts";
import type { CachedCompletion } from "../domain/record.ts";
import type { CacheEpoch } from "../domain/tenant.ts";
import { createMemoryCache } from "./memory.ts";
import type { RedisCache } from "./redis.ts";
import { createReplayCache } from "./replay-cache.ts";

/** A copy whose record's retention ends 50 s, and its result's 40 s, after it was seen. */
const SEEN_AT_MS = 1_000_000;
const COPY = copyThatEnds(40_000, 50_000);
const id = ID;

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

function copyThatEnds(resultLeftMs: number, leftMs: number): CachedCompletion {
  return {
    fingerprint: undefined,
    firstClaimedAtMs: 1000,
    completedAtMs: 5000,
    resultExpiresAtMs: SEEN_AT_MS + resultLeftMs,
    expiresAtMs: SEEN_AT_MS + leftMs,
    result: DONE,
  };
}

/** What is known of the tenant now, its database's clock being so much past the record's sight. */
function epoch(scope = "a tenant's", sinceSeenMs = 0): CacheEpoch {
  return { scope, askedAtMs: performance.now(), databaseTimeMs: SEEN_AT_MS + sinceSeenMs };
}

/** Replicas that share a store of bytes which forgets nothing by itself. */
function createReplicas() {
  const stored = new Map<string, Buffer>();
  const lifetimes: number[] = [];
  const redis: RedisCache = {
    get: async (name) => ({ bytes: stored.get(name), answered: true }),
    set(name, bytes, lifetimeMs) {
      stored.set(name, bytes());
      lifetimes.push(lifetimeMs);
    },
    publish() {},
    isBypassed: () => false,
    stop() {},
  };
  const newReplica = () => {
    const looks: string[] = [];
    const replayCache = createReplayCache({
      memory: createMemoryCache(1024 * 1024),
      redis,
      secret: "a pepper of thirty-two characters",
      onLookup: (layer, result) => looks.push(`${layer} ${result}`),
    });
    // Repeats are frequent here.
    for (let i = 0; i < 20; i++) replayCache.countAnswer(id, true);
    return { ...replayCache, looks };
  };
  return { newReplica, stored, lifetimes };
}

test("a copy is found in memory, and by another replica in Redis and then in its memory", async () => {
  const { newReplica } = createReplicas();
  const [one, two] = [newReplica(), newReplica()];
  one.keep(id, COPY, epoch());
  // At once: nothing has to be awaited.
  expect(one.find(id, epoch())).toEqual(COPY);
  expect(one.looks).toEqual(["memory hit"]);
  for (let i = 0; i < 2; i++) expect(await two.find(id, epoch())).toEqual(COPY);
  expect(two.looks).toEqual(["memory miss", "redis hit", "memory hit"]);
});

test("an entry in Redis that was altered is looked at once, and is no copy", async () => {
  const { newReplica, stored } = createReplicas();
  const [one, two] = [newReplica(), newReplica()];
  one.keep(id, COPY, epoch());
  for (const entry of stored.values()) entry.writeUInt8(entry.readUInt8(20) ^ 1, 20);
  expect(await two.find(id, epoch())).toBeUndefined();
  expect(two.looks).toEqual(["memory miss", "redis invalid"]);
});

test("all who ask for a record at once share one look in Redis, and go on in the order in which they came", async () => {
  const { newReplica } = createReplicas();
  const [one, two] = [newReplica(), newReplica()];
  one.keep(id, COPY, epoch());
  const order: number[] = [];
  await Promise.all(
    [0, 1, 2].map(async (n) => {
      await two.find(id, epoch());
      order.push(n);
    }),
  );
  expect(two.looks.filter((look) => look.startsWith("redis"))).toEqual(["redis hit"]);
  expect(order).toEqual([0, 1, 2]);
});

test("a copy filled in under an earlier scope is not found, however late", async () => {
  const { newReplica } = createReplicas();
  const [one, two] = [newReplica(), newReplica()];
  const [earlier, later] = [epoch("earlier"), epoch("later")];
  expect(await two.find(id, later)).toBeUndefined();
  one.keep(id, COPY, earlier);
  expect([await one.find(id, later), await two.find(id, later)]).toEqual([undefined, undefined]);
});

test("a call that knows a scope older than 10 s finds nothing", async () => {
  const replica = createReplicas().newReplica();
  const known = epoch();
  replica.keep(id, COPY, known);
  vi.advanceTimersByTime(10_000);
  expect(await replica.find(id, known)).toBeDefined();
  vi.advanceTimersByTime(1);
  expect(await replica.find(id, known)).toBeUndefined();
  expect(await replica.find(id, epoch(undefined, 10_001))).toBeDefined();
});

test.each([
  ["the result's", copyThatEnds(40_000, 50_000), 40_000],
  ["the key's", copyThatEnds(40_000, 30_000), 30_000],
])(
  "a copy ends with %s retention on the database's clock, in memory and in Redis",
  async (_, copy, endsMs) => {
    const { newReplica, lifetimes } = createReplicas();
    const [one, two, three] = [newReplica(), newReplica(), newReplica()];
    one.keep(id, copy, epoch());
    expect(lifetimes).toEqual([endsMs]);
    expect(await two.find(id, epoch(undefined, endsMs - 1))).toBeDefined();
    // Memory's lifetimes have not ended: this process has seen no time pass.
    for (const replica of [one, two, three])
      expect(await replica.find(id, epoch(undefined, endsMs))).toBeUndefined();
    expect(three.looks).toEqual(["memory miss", "redis invalid"]);
  },
);

test("what has passed since the database's clock was read counts", async () => {
  const { newReplica } = createReplicas();
  const [one, two] = [newReplica(), newReplica()];
  one.keep(id, COPY, epoch());
  const known = epoch(undefined, 35_000);
  vi.advanceTimersByTime(4999);
  expect(await two.find(id, known)).toBeDefined();
  vi.advanceTimersByTime(1);
  expect(await two.find(id, known)).toBeUndefined();
});

test("a record whose retention ended before it was seen is not kept", () => {
  const { newReplica, stored } = createReplicas();
  newReplica().keep(id, copyThatEnds(0, 50_000), epoch());
  expect(stored.size).toBe(0);
});

test("a copy of one scope, namespace or key is not another's", async () => {
  const replica = createReplicas().newReplica();
  replica.keep(id, COPY, epoch());
  const others = [
    { ...id, namespace: "charge", key: `s${id.key}` },
    { ...id, key: "order-2" },
  ];
  for (const other of others) {
    for (let i = 0; i < 20; i++) replica.countAnswer(other, true);
    expect(await replica.find(other, epoch())).toBeUndefined();
  }
  expect(await replica.find(id, epoch("another tenant's"))).toBeUndefined();
});

test("Redis is not asked in a namespace where nothing repeats", async () => {
  const { newReplica } = createReplicas();
  const replica = newReplica();
  await replica.find({ ...id, namespace: "fresh" }, epoch());
  expect(replica.looks).toEqual(["memory miss"]);
});

test("a payload larger than 16 KiB is not kept", () => {
  const { newReplica, stored } = createReplicas();
  const result = { ...DONE, payload: Buffer.alloc(16 * 1024 + 1) };
  newReplica().keep(id, { ...COPY, result }, epoch());
  expect(stored.size).toBe(0);
});

test("without Redis, memory alone answers", async () => {
  const replica = createReplayCache({
    memory: createMemoryCache(1024 * 1024),
    redis: undefined,
    secret: "a pepper of thirty-two characters",
    onLookup: () => {},
  });
  replica.keep(id, COPY, epoch());
  expect(await replica.find(id, epoch())).toBeDefined();
});
