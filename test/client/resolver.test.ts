import { once } from "node:events";
import { timestampNow } from "@bufbuild/protobuf/wkt";
import * as client from "@onceward/client";
import { type ResolverOptions, resolveAmbiguous, startResolver } from "@onceward/client/admin";
import { Record_State, type RecordMessage } from "@onceward/client/proto";
import { expect, onTestFinished, test, vi } from "vitest";
import { createWorld } from "../support/calls/admin.ts";
import { ageRecords, endLeases } from "../support/calls/records.ts";
import { useServer } from "../support/servers/use-server.ts";

const { database, server } = useServer();
const { didNotHappen, happened, stillOpen, unknown } = client;

const namespace = "payouts";
/** A resolver knows a record's time and fingerprint only from the record. */
const POLICY = { on_lease_expiry: "HOLD", late_keys: "REQUIRE_TIME", require_fingerprint: true };
const LOCK = "onceward-resolver";
const WITHIN_MS = 30_000;

/** A new tenant with records whose holders died. Its resolvers pause shortly, and close after the test. */
async function newWorld(...keys: readonly string[]) {
  const { tenant, admin } = await createWorld(database, server).administeredTenant(POLICY);
  const events: client.OncewardEvent[] = [];
  const address = `http://127.0.0.1:${server.grpcPort}`;
  const onEvent = (event: client.OncewardEvent) => events.push(event);
  const onceward = client.createOnceward({ address, apiKey: tenant.apiKey, onEvent });
  onTestFinished(() => onceward.close());
  const die = async (key: string) => {
    const fingerprint = client.fingerprintOf(key);
    await onceward.calls.claim({ namespace, key, fingerprint, keyCreatedAt: timestampNow() });
    await endLeases(database, tenant, key);
  };
  await Promise.all(keys.map(die));
  return {
    ...{ tenant, onceward, admin, events, die },
    recordOf: async (key: string) => (await onceward.calls.lookup({ namespace, key })).record,
    start(options: Partial<ResolverOptions> & { readonly resolve: client.Resolve }) {
      const resolver = startResolver({ onceward, admin, namespace, pauseMs: 10, ...options });
      onTestFinished(() => resolver.close());
      return resolver;
    },
  };
}

test("each record is completed, released or left as it was, as resolve finds out", async () => {
  const open = ["open", "unknown", "throws", "whenever", "unstorable", "large"];
  const world = await newWorld("happened", "not", ...open, "onceward-resolver");
  const { onceward, admin, recordOf, events } = world;
  const before = await Promise.all(open.map(recordOf));
  const onFailed = vi.fn();
  const down = new Error("the provider is down");
  const resolve: client.Resolve = ({ key }) => {
    if (key === "happened") return happened({ id: "po_1" });
    if (key === "not") return didNotHappen();
    if (key === "open") return stillOpen({ retryAfterMs: 5000 });
    if (key === "unknown") return unknown();
    if (key === "whenever") return { kind: "still-open" } as client.Resolution;
    if (key === "unstorable") return happened(1n);
    if (key === "large") return happened("x".repeat(2_000_000));
    throw down;
  };
  const counts = await resolveAmbiguous({ onceward, admin, namespace, resolve, onFailed });
  expect(counts).toEqual({ settled: 2, open: 2, failed: 4 });
  const reasons = onFailed.mock.calls.map(([error]) => (error === down ? "DOWN" : error.reason));
  expect(reasons.sort()).toEqual(["DOWN", "INVALID_REQUEST", "RESULT_NOT_JSON", "RESULT_TOO_LARGE"]);
  const found = events.flatMap((event) => (event.type === "resolved" ? [event.found] : []));
  expect(found.sort()).toEqual(["did-not-happen", "happened", "still-open", ...Array(5).fill("unknown")]);
  const changes = { fencingToken: expect.any(BigInt), expiresAt: expect.anything() };
  const asBefore = before.map((record?: RecordMessage) => ({ ...record, ...changes }));
  expect(await Promise.all(open.map(recordOf))).toEqual(asBefore);
  const pay = (key: string) =>
    onceward.run({ namespace, key, fingerprint: key, keyCreatedAt: new Date() }, () => "paid now");
  expect([await pay("happened"), await pay("not")]).toEqual([{ id: "po_1" }, "paid now"]);
});

test.each([
  ["before", undefined],
  ["after", Record_State.RELEASED],
] as const)(
  "of a listed record that is forgotten %s it is looked up, no claim is left",
  async (when, state) => {
    const { onceward, admin, recordOf } = await newWorld("order-1");
    const listed = await admin.listRecords({ namespace, state: Record_State.AMBIGUOUS });
    const resolution = { case: "forget", value: {} } as const;
    const forget = () => admin.resolveRecord({ namespace, key: "order-1", resolution, reason: "asked" });
    if (when === "before") await forget();
    else
      vi.spyOn(onceward, "lookup").mockImplementationOnce(async () => {
        await forget();
        return { state: "ambiguous" } as never;
      });
    const resolve = vi.fn(didNotHappen);
    const stale = { listRecords: async () => listed };
    const counts = await resolveAmbiguous({ onceward, admin: stale, namespace, resolve });
    expect(counts).toEqual({ settled: 1, open: 0, failed: 0 });
    expect(resolve).not.toHaveBeenCalled();
    expect((await recordOf("order-1"))?.state).toBe(state);
  },
);

test("of two resolvers one works, and the other follows when it is closed", async () => {
  const { start, events } = await newWorld("order-1", "order-2");
  const asked: string[] = [];
  const resolve = (name: string) => async (claim: client.Claim) => {
    asked.push(name);
    await once(claim.signal, "abort");
    return unknown();
  };
  const first = start({ resolve: resolve("first"), concurrency: 1 });
  await vi.waitUntil(() => asked.length > 0, WITHIN_MS);
  start({ resolve: resolve("second"), concurrency: 1 });
  await vi.waitUntil(() => events.filter(({ type }) => type === "not-run").length > 2, WITHIN_MS);
  expect(asked).toEqual(["first"]);
  await first.close();
  await vi.waitUntil(() => asked.includes("second"), WITHIN_MS);
});

test("a record that is still open is not asked about before its time, and new records are", async () => {
  const { start, die } = await newWorld("order-1");
  const resolve = vi.fn<client.Resolve>(() => stillOpen({ retryAfterMs: 3_600_000 }));
  start({ resolve });
  await vi.waitUntil(() => resolve.mock.calls.length === 1, WITHIN_MS);
  await die("order-2");
  await vi.waitUntil(() => resolve.mock.calls.length === 2, WITHIN_MS);
  expect(resolve.mock.calls.map(([{ key }]) => key)).toEqual(["order-1", "order-2"]);
});

test("a record whose resolve hangs or does not know waits its turn, and others are settled", async () => {
  const { start, recordOf, tenant, die } = await newWorld("hangs", "unknown");
  await ageRecords(database, tenant, 3600);
  const onFailed = vi.fn();
  const answers: Record<string, Promise<never> | client.Resolution> = {
    hangs: new Promise(() => {}),
    unknown: unknown(),
  };
  const resolve = vi.fn<client.Resolve>(({ key }) => answers[key] ?? happened("paid"));
  start({ resolve, onFailed, concurrency: 1, resolveTimeoutMs: 100 });
  for (const key of ["order-1", "order-2", "order-3"]) {
    await die(key);
    const settled = async () => (await recordOf(key))?.state === Record_State.COMPLETED;
    await vi.waitUntil(settled, WITHIN_MS);
  }
  expect(onFailed.mock.calls).toMatchObject([[{ name: "TimeoutError" }]]);
  const asked = resolve.mock.calls.map(([{ key }]) => key);
  expect(asked.sort()).toEqual(["hangs", "order-1", "order-2", "order-3", "unknown"]);
});

test.each(["close", "signal", "client"])(
  "ended by its %s, a resolver gives back what it claimed, also if resolve hangs",
  async (by) => {
    const { start, onceward, admin } = await newWorld("order-1", "order-2");
    const controller = new AbortController();
    const asked: string[] = [];
    const resolver = start({
      signal: controller.signal,
      resolve: ({ key }) => {
        asked.push(key);
        // A call to the provider that hangs.
        return new Promise(() => {});
      },
    });
    await vi.waitUntil(() => asked.length === 2, WITHIN_MS);
    if (by === "signal") controller.abort();
    if (by === "client") await onceward.close();
    await resolver.close();
    expect((await admin.listRecords({ namespace })).records).toMatchObject([
      { key: "onceward-resolver", state: Record_State.RELEASED },
      { key: "order-1", state: Record_State.AMBIGUOUS, attempt: 1 },
      { key: "order-2", state: Record_State.AMBIGUOUS, attempt: 1 },
    ]);
  },
);

test("a resolver continues after the service was away, and a dead resolver's lock is taken over", async () => {
  const { start, admin, recordOf } = await newWorld("order-1", "onceward-resolver");
  const listing = vi.spyOn(admin, "listRecords").mockRejectedValueOnce(new Error("away"));
  const onFailed = vi.fn();
  start({ resolve: () => happened("paid"), onFailed });
  await vi.waitUntil(async () => (await recordOf("order-1"))?.state === Record_State.COMPLETED, WITHIN_MS);
  expect(onFailed.mock.calls).toEqual([[new Error("away")]]);
  expect(listing).toHaveBeenCalled();
});

test("a completed record of the lock is reported once a pause", async () => {
  const { start, onceward, events } = await newWorld();
  await onceward.run({ namespace, key: LOCK, fingerprint: LOCK, keyCreatedAt: new Date() }, () => "by hand");
  const onFailed = vi.fn();
  start({ resolve: unknown, onFailed, pauseMs: 3_600_000 });
  await vi.waitUntil(() => onFailed.mock.calls.length > 0, WITHIN_MS);
  expect(onFailed.mock.calls).toEqual([[expect.any(client.TerminalError)]]);
  expect(events.filter(({ type }) => type === "duplicate-skipped")).toHaveLength(1);
});

test("a dead resolver's lock lapses, and does not become ambiguous", async () => {
  const { start, tenant, admin, recordOf } = await newWorld();
  start({ resolve: unknown, pauseMs: 3_600_000 });
  await vi.waitUntil(async () => (await recordOf(LOCK)) !== undefined, WITHIN_MS);
  await endLeases(database, tenant, LOCK);
  expect((await admin.listRecords({ namespace, state: Record_State.AMBIGUOUS })).records).toEqual([]);
});

test("a listed record that another pass holds is still open", async () => {
  const { onceward, admin } = await newWorld("order-1");
  const listed = await admin.listRecords({ namespace, state: Record_State.AMBIGUOUS });
  const held = { namespace, key: "order-1", fingerprint: client.fingerprintOf("order-1") };
  await onceward.calls.claim({ ...held, acceptAmbiguous: true, keyCreatedAt: timestampNow() });
  const stale = { listRecords: async () => listed };
  const counts = await resolveAmbiguous({ onceward, admin: stale, namespace, resolve: didNotHappen });
  expect(counts).toEqual({ settled: 0, open: 1, failed: 0 });
});

test.each([
  ["namespace", "Payouts"],
  ["resolve", "happened"],
  ["concurrency", 0],
  ["pauseMs", 9],
])("the option %s is checked at the start: %j", (field, value) => {
  const options = { namespace, resolve: unknown, [field]: value } as unknown as ResolverOptions;
  const violations = [expect.objectContaining({ field })];
  expect(() => startResolver(options)).toThrow(expect.objectContaining({ violations }));
});
