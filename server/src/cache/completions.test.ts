import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { recordIn } from "../../../test/helpers/domain.ts";
import { copyOf, type LiveRecord } from "../domain/record.ts";
import type { CopyTerms } from "../domain/tenant.ts";
import { createCompletions } from "./completions.ts";
import { createMemoryCache } from "./memory.ts";
import type { RedisCache } from "./redis.ts";

/** A record whose retention ends 50 s, and its result's 40 s, after it was seen. */
const SEEN_AT_MS = 1_000_000;
const RECORD = completedRecord(40_000, 50_000);
const { id } = RECORD;

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

function completedRecord(resultLeftMs: number, leftMs: number): LiveRecord {
  const { phase } = recordIn("completed");
  if (phase.kind !== "completed") throw new Error("the record is not completed");
  return recordIn("completed", {
    seenAtMs: SEEN_AT_MS,
    expiresAtMs: SEEN_AT_MS + leftMs,
    phase: { ...phase, resultExpiresAtMs: SEEN_AT_MS + resultLeftMs },
  });
}

/** What is known of the tenant now, its database's clock being so much past the record's sight. */
function terms(generation = 0, sinceSeenMs = 0): CopyTerms {
  return { generation, askedAtMs: performance.now(), databaseTimeMs: SEEN_AT_MS + sinceSeenMs };
}

/** Replicas that share a store of bytes which forgets nothing by itself. */
function createReplicas() {
  const stored = new Map<string, Buffer>();
  const lifetimes: number[] = [];
  const redis: RedisCache = {
    get: async (name) => ({ bytes: stored.get(name), answered: true }),
    set(name, bytes, lifetimeMs) {
      stored.set(name, bytes);
      lifetimes.push(lifetimeMs);
    },
    publish() {},
    isBypassed: () => false,
    stop() {},
  };
  const newReplica = (installationId = "here") => {
    const looks: string[] = [];
    const completions = createCompletions({
      memory: createMemoryCache(1024 * 1024),
      redis,
      installationId,
      secret: "a pepper of thirty-two characters",
      onLook: (layer, result) => looks.push(`${layer} ${result}`),
    });
    // Repeats are frequent here.
    for (let i = 0; i < 20; i++) completions.countAnswer(id, true);
    return { ...completions, looks };
  };
  return { newReplica, stored, lifetimes };
}

test("a copy is found in memory, and by another replica in Redis and then in its memory", async () => {
  const { newReplica } = createReplicas();
  const [one, two] = [newReplica(), newReplica()];
  one.keep(RECORD, terms());
  // At once: nothing has to be awaited.
  expect(one.find(id, terms())).toEqual(copyOf(RECORD));
  expect(one.looks).toEqual(["memory hit"]);
  for (let i = 0; i < 2; i++) expect(await two.find(id, terms())).toEqual(copyOf(RECORD));
  expect(two.looks).toEqual(["memory miss", "redis hit", "memory hit"]);
});

test("an entry in Redis that was altered is looked at once, and is no copy", async () => {
  const { newReplica, stored } = createReplicas();
  const [one, two] = [newReplica(), newReplica()];
  one.keep(RECORD, terms());
  for (const entry of stored.values()) entry.writeUInt8(entry.readUInt8(20) ^ 1, 20);
  expect(await two.find(id, terms())).toBeUndefined();
  expect(two.looks).toEqual(["memory miss", "redis invalid"]);
});

test("all who ask for a record at once share one look in Redis, and go on in the order in which they came", async () => {
  const { newReplica } = createReplicas();
  const [one, two] = [newReplica(), newReplica()];
  one.keep(RECORD, terms());
  const order: number[] = [];
  await Promise.all(
    [0, 1, 2].map(async (n) => {
      await two.find(id, terms());
      order.push(n);
    }),
  );
  expect(two.looks.filter((look) => look.startsWith("redis"))).toEqual(["redis hit"]);
  expect(order).toEqual([0, 1, 2]);
});

test("nothing but a completed record with its result is kept", async () => {
  const { newReplica, stored } = createReplicas();
  const replica = newReplica();
  for (const phase of ["inProgress", "lapsed", "ambiguous", "released"] as const)
    replica.keep(recordIn(phase), terms());
  if (RECORD.phase.kind === "completed")
    replica.keep({ ...RECORD, phase: { ...RECORD.phase, result: undefined } }, terms());
  expect([await replica.find(id, terms()), stored.size]).toEqual([undefined, 0]);
});

test("a copy filled in under an earlier generation is not found, however late", async () => {
  const { newReplica } = createReplicas();
  const [one, two] = [newReplica(), newReplica()];
  const earlier = terms(0);
  expect(await two.find(id, terms(1))).toBeUndefined();
  one.keep(RECORD, earlier);
  expect([await one.find(id, terms(1)), await two.find(id, terms(1))]).toEqual([undefined, undefined]);
});

test("a call that knows a generation older than 10 s finds nothing", async () => {
  const replica = createReplicas().newReplica();
  const known = terms();
  replica.keep(RECORD, known);
  vi.advanceTimersByTime(10_000);
  expect(await replica.find(id, known)).toBeDefined();
  vi.advanceTimersByTime(1);
  expect(await replica.find(id, known)).toBeUndefined();
  expect(await replica.find(id, terms(0, 10_001))).toBeDefined();
});

test.each([
  ["the result's", completedRecord(40_000, 50_000), 40_000],
  ["the key's", completedRecord(40_000, 30_000), 30_000],
])(
  "a copy ends with %s retention on the database's clock, in memory and in Redis",
  async (_, record, endsMs) => {
    const { newReplica, lifetimes } = createReplicas();
    const [one, two, three] = [newReplica(), newReplica(), newReplica()];
    one.keep(record, terms());
    expect(lifetimes).toEqual([endsMs]);
    expect(await two.find(id, terms(0, endsMs - 1))).toBeDefined();
    // Memory's lifetimes have not ended: this process has seen no time pass.
    for (const replica of [one, two, three]) expect(await replica.find(id, terms(0, endsMs))).toBeUndefined();
    expect(three.looks).toEqual(["memory miss", "redis invalid"]);
  },
);

test("what has passed since the database's clock was read counts", async () => {
  const { newReplica } = createReplicas();
  const [one, two] = [newReplica(), newReplica()];
  one.keep(RECORD, terms());
  const known = terms(0, 35_000);
  vi.advanceTimersByTime(4999);
  expect(await two.find(id, known)).toBeDefined();
  vi.advanceTimersByTime(1);
  expect(await two.find(id, known)).toBeUndefined();
});

test("a record whose retention ended before it was seen is not kept", () => {
  const { newReplica, stored } = createReplicas();
  newReplica().keep(completedRecord(0, 50_000), terms());
  expect(stored.size).toBe(0);
});

test("a copy of one installation, tenant, namespace or key is not another's", async () => {
  const { newReplica } = createReplicas();
  const [here, there] = [newReplica(), newReplica("there")];
  here.keep(RECORD, terms());
  const others = [
    { ...id, tenantId: 2 },
    { ...id, namespace: "charge", key: `s${id.key}` },
    { ...id, key: "order-2" },
  ];
  for (const other of others) {
    for (let i = 0; i < 20; i++) here.countAnswer(other, true);
    expect(await here.find(other, terms())).toBeUndefined();
  }
  expect(await there.find(id, terms())).toBeUndefined();
});

test("Redis is not asked in a namespace where nothing repeats", async () => {
  const { newReplica } = createReplicas();
  const replica = newReplica();
  await replica.find({ ...id, namespace: "fresh" }, terms());
  expect(replica.looks).toEqual(["memory miss"]);
});

test("a payload larger than 16 KiB is not kept", () => {
  const { newReplica, stored } = createReplicas();
  if (RECORD.phase.kind !== "completed" || RECORD.phase.result === undefined) throw new Error("no result");
  const result = { ...RECORD.phase.result, payload: Buffer.alloc(16 * 1024 + 1) };
  newReplica().keep({ ...RECORD, phase: { ...RECORD.phase, result } }, terms());
  expect(stored.size).toBe(0);
});

test("without Redis, memory alone answers", async () => {
  const replica = createCompletions({
    memory: createMemoryCache(1024 * 1024),
    redis: undefined,
    installationId: "here",
    secret: "a pepper of thirty-two characters",
    onLook: () => {},
  });
  replica.keep(RECORD, terms());
  expect(await replica.find(id, terms())).toBeDefined();
});
