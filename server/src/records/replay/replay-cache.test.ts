import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { DONE, ID } from "../../../../test/support/calls/domain.ts";
import type { CacheEpoch } from "../../domain/tenant.ts";
import type { CachedCompletion } from "../record.ts";
import { signedFormat } from "./entry-format.ts";
import { createMemoryCache } from "./memory.ts";
import type { RedisCache } from "./redis.ts";
import { createReplayCache, type ReplayCache } from "./replay-cache.ts";

/** Looks in memory, then in Redis where that is asked. */
const find = (cache: ReplayCache, ...of: Parameters<ReplayCache["findInMemory"]>) =>
  cache.findInMemory(...of) ?? cache.findInRedis(...of);

/** A completion, read when its record's retention has 50 s left and its result's 40 s. */
const SEEN_AT_MS = 1_000_000;
const COMPLETION = completionWith(40_000, 50_000);
const FORMAT = signedFormat("a pepper of thirty-two characters");
const id = ID;

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

function completionWith(resultRemainingMs: number, remainingMs: number): CachedCompletion {
  return {
    fingerprint: undefined,
    firstClaimedAtMs: 1000,
    completedAtMs: 5000,
    claimId: "",
    resultExpiresAtMs: SEEN_AT_MS + resultRemainingMs,
    expiresAtMs: SEEN_AT_MS + remainingMs,
    result: DONE,
  };
}

/** Returns the tenant's epoch now, this long after the record was read, on the database's clock. */
function epoch(scope = "a tenant's", sinceSeenMs = 0): CacheEpoch {
  return { scope, askedAtMs: performance.now(), databaseTimeMs: SEEN_AT_MS + sinceSeenMs };
}

/** Creates replicas that share a store of bytes without expiry. */
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
  const newReplica = ({ frequent = true } = {}) => {
    const lookups: string[] = [];
    const replayCache = createReplayCache({
      memory: createMemoryCache(1024 * 1024),
      redis,
      format: FORMAT,
      onLookup: (layer, result) => lookups.push(`${layer} ${result}`),
    });
    if (frequent) for (let i = 0; i < 20; i++) replayCache.countAnswer(id, true);
    return { ...replayCache, lookups };
  };
  return { newReplica, stored, lifetimes };
}

test("a completion is found in memory, and by another replica in Redis and then in its memory", async () => {
  const { newReplica } = createReplicas();
  const [one, two] = [newReplica(), newReplica()];
  one.keep(id, COMPLETION, epoch());
  // Synchronous.
  expect(find(one, id, epoch())).toEqual(COMPLETION);
  expect(one.lookups).toEqual(["memory hit"]);
  for (let i = 0; i < 2; i++) expect(await find(two, id, epoch())).toEqual(COMPLETION);
  expect(two.lookups).toEqual(["memory miss", "redis hit", "memory hit"]);
});

test("only a replica that sees frequent duplicates copies a completion to Redis", async () => {
  const { newReplica, stored } = createReplicas();
  const [rare, often] = [newReplica({ frequent: false }), newReplica()];
  rare.keep(id, COMPLETION, epoch());
  expect([stored.size, find(rare, id, epoch())]).toEqual([0, COMPLETION]);
  expect(await find(often, id, epoch())).toBeUndefined();
  // As after the statement that answered the duplicate.
  often.keep(id, COMPLETION, epoch());
  expect(stored.size).toBe(1);
});

test("an altered entry in Redis is looked up once and not answered", async () => {
  const { newReplica, stored } = createReplicas();
  const [one, two] = [newReplica(), newReplica()];
  one.keep(id, COMPLETION, epoch());
  for (const entry of stored.values()) entry.writeUInt8(entry.readUInt8(20) ^ 1, 20);
  expect(await find(two, id, epoch())).toBeUndefined();
  expect(two.lookups).toEqual(["memory miss", "redis invalid"]);
});

test("concurrent lookups of a record share one Redis lookup and resolve in order", async () => {
  const { newReplica } = createReplicas();
  const [one, two] = [newReplica(), newReplica()];
  one.keep(id, COMPLETION, epoch());
  const order: number[] = [];
  await Promise.all(
    [0, 1, 2].map(async (n) => {
      await find(two, id, epoch());
      order.push(n);
    }),
  );
  expect(two.lookups.filter((look) => look.startsWith("redis"))).toEqual(["redis hit"]);
  expect(order).toEqual([0, 1, 2]);
});

test.each([
  ["payload", { payload: Buffer.alloc(16 * 1024 - 1) }],
  ["metadata", { metadataJson: JSON.stringify({ a: "x".repeat(16 * 1024 - 6 - "done".length) }) }],
])("a result of more than 16 KiB with its metadata is not kept: %s", async (_, parts) => {
  const { newReplica, stored } = createReplicas();
  const replica = newReplica();
  const result = { ...COMPLETION.result, metadataJson: "{}", ...parts };
  replica.keep(id, { ...COMPLETION, result }, epoch());
  expect(await find(replica, id, epoch())).toBeUndefined();
  expect([...stored.values()]).toEqual([Buffer.of(0)]);
});

test("a newer result that is too large removes a forgotten record's, in memory and in Redis", async () => {
  const { newReplica } = createReplicas();
  const [one, two] = [newReplica(), newReplica()];
  one.keep(id, COMPLETION, epoch());
  one.keep(
    id,
    { ...COMPLETION, result: { ...COMPLETION.result, payload: Buffer.alloc(16 * 1024 + 1) } },
    epoch(),
  );
  expect([await find(one, id, epoch()), await find(two, id, epoch())]).toEqual([undefined, undefined]);
  expect(two.lookups).toEqual(["memory miss", "redis miss"]);
});

test("a completion stored under an earlier scope is not found, even if stored late", async () => {
  const { newReplica } = createReplicas();
  const [one, two] = [newReplica(), newReplica()];
  const [earlier, later] = [epoch("earlier"), epoch("later")];
  expect(await find(two, id, later)).toBeUndefined();
  one.keep(id, COMPLETION, earlier);
  expect([await find(one, id, later), await find(two, id, later)]).toEqual([undefined, undefined]);
});

test("a call whose epoch is older than 10 s finds nothing", async () => {
  const replica = createReplicas().newReplica();
  const known = epoch();
  replica.keep(id, COMPLETION, known);
  vi.advanceTimersByTime(10_000);
  expect(await find(replica, id, known)).toBeDefined();
  vi.advanceTimersByTime(1);
  expect(await find(replica, id, known)).toBeUndefined();
  expect(await find(replica, id, epoch(undefined, 10_001))).toBeDefined();
});

test.each([
  ["the result's", completionWith(40_000, 50_000), 40_000],
  ["the key's", completionWith(40_000, 30_000), 30_000],
])(
  "a completion expires with %s retention on the database's clock, in memory and in Redis",
  async (_, completion, endsMs) => {
    const { newReplica, lifetimes } = createReplicas();
    const [one, two, three] = [newReplica(), newReplica(), newReplica()];
    one.keep(id, completion, epoch());
    expect(lifetimes).toEqual([endsMs]);
    expect(await find(two, id, epoch(undefined, endsMs - 1))).toBeDefined();
    // The entries in memory have not expired: no time has passed on this process' clock.
    for (const replica of [one, two, three])
      expect(await find(replica, id, epoch(undefined, endsMs))).toBeUndefined();
    expect(three.lookups).toEqual(["memory miss", "redis invalid"]);
  },
);

test("the time since the database's clock was read counts", async () => {
  const { newReplica } = createReplicas();
  const [one, two] = [newReplica(), newReplica()];
  one.keep(id, COMPLETION, epoch());
  const known = epoch(undefined, 35_000);
  vi.advanceTimersByTime(4999);
  expect(await find(two, id, known)).toBeDefined();
  vi.advanceTimersByTime(1);
  expect(await find(two, id, known)).toBeUndefined();
});

test("a record whose retention has ended is not kept", () => {
  const { newReplica, stored } = createReplicas();
  newReplica().keep(id, completionWith(0, 50_000), epoch());
  expect(stored.size).toBe(0);
});

test("a completion of one scope, namespace or key is not found under another", async () => {
  const replica = createReplicas().newReplica();
  replica.keep(id, COMPLETION, epoch());
  const others = [
    { ...id, namespace: "charge", key: `s${id.key}` },
    { ...id, key: "order-2" },
  ];
  for (const other of others) {
    for (let i = 0; i < 20; i++) replica.countAnswer(other, true);
    expect(await find(replica, other, epoch())).toBeUndefined();
  }
  expect(await find(replica, id, epoch("another tenant's"))).toBeUndefined();
});

test("Redis is not asked in a namespace without repeats", async () => {
  const { newReplica } = createReplicas();
  const replica = newReplica();
  await find(replica, { ...id, namespace: "fresh" }, epoch());
  expect(replica.lookups).toEqual(["memory miss"]);
});

test("without Redis, memory answers", async () => {
  const replica = createReplayCache({
    memory: createMemoryCache(1024 * 1024),
    redis: undefined,
    format: FORMAT,
    onLookup: () => {},
  });
  replica.keep(id, COMPLETION, epoch());
  expect(await find(replica, id, epoch())).toBeDefined();
});
