import {
  AmbiguousError,
  type ClientOptions,
  type Codec,
  createOnceward,
  FingerprintMismatchError,
  jsonCodec,
  type Onceward,
  TerminalError,
} from "@onceward/client";
import { expect, test, vi } from "vitest";
import type { Claimed } from "../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import { endLeases } from "../support/calls/records.ts";
import { createTenant, setNamespacePolicy, type TestTenant } from "../support/servers/tenants.ts";
import { useServer } from "../support/servers/use-server.ts";

const { database, server } = useServer();

/** A client of a new tenant; `await using` closes it. */
async function newOnceward(
  options: ClientOptions = {},
  policy?: Parameters<typeof createTenant>[1],
): Promise<{ onceward: Onceward; tenant: TestTenant } & AsyncDisposable> {
  const tenant = await createTenant(database, policy);
  const address = `http://127.0.0.1:${server.grpcPort}`;
  const onceward = createOnceward({ ...options, address, apiKey: tenant.apiKey });
  return { onceward, tenant, [Symbol.asyncDispose]: () => onceward.close() };
}

const operation = { namespace: "charges", key: "order-1" };

async function rejectionOf(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error("it did not reject");
}

test("the first run runs, and a repeat gets the stored value without running", async () => {
  await using client = await newOnceward();
  const fn = vi.fn(() => ({ charge: "ch_1" }));
  const first = await client.onceward.runDetailed({ ...operation, fingerprint: { amount: 100 } }, fn);
  const repeat = await client.onceward.runDetailed({ ...operation, fingerprint: { amount: 100 } }, fn);
  expect(first).toMatchObject({ value: { charge: "ch_1" }, replayed: false, attempt: 1 });
  expect(repeat).toEqual({
    value: { charge: "ch_1" },
    replayed: true,
    guarded: true,
    completedAt: first.completedAt,
    expiresAt: first.expiresAt,
  });
  expect(fn).toHaveBeenCalledOnce();
});

test("a repeat gets the first value, also if JSON changes it", async () => {
  await using client = await newOnceward();
  const run = () => client.onceward.run<unknown>(operation, () => ({ at: new Date(0), gone: undefined }));
  expect(await run()).toEqual({ at: "1970-01-01T00:00:00.000Z" });
  expect(await run()).toEqual({ at: "1970-01-01T00:00:00.000Z" });
});

test("of fifty concurrent runs one runs, and all get its value", async () => {
  await using client = await newOnceward();
  const fn = vi.fn(async () => "charged");
  const values = await Promise.all(Array.from({ length: 50 }, () => client.onceward.run(operation, fn)));
  expect(new Set(values)).toEqual(new Set(["charged"]));
  expect(fn).toHaveBeenCalledOnce();
});

test("under HOLD, a claim whose process dies is taken over before it begins, and held afterwards", async () => {
  await using client = await newOnceward({}, { on_lease_expiry: "HOLD" });
  const marks = { namespace: "charges", marksBegin: true };
  const { outcome } = await client.onceward.calls.claim({ ...marks, key: "begun" });
  const { fencingToken } = outcome.value as Claimed;
  await client.onceward.calls.extendLease({ namespace: "charges", key: "begun", fencingToken, begin: true });
  await client.onceward.calls.claim({ ...marks, key: "not-begun" });
  await endLeases(database, client.tenant);
  const run = (key: string) =>
    client.onceward.run({ ...marks, key }, async (claim) => {
      await claim.begin();
      return claim.attempt;
    });
  expect(await run("not-begun")).toBe(2);
  await expect(run("begun")).rejects.toThrow(AmbiguousError);
});

test("a waiter takes over when the holder gives up", async () => {
  await using client = await newOnceward();
  const held = Promise.withResolvers<void>();
  const holder = client.onceward.run(operation, () => held.promise);
  await vi.waitFor(
    async () => expect((await client.onceward.calls.lookup(operation)).record).toBeDefined(),
    30_000,
  );
  const waiter = client.onceward.runDetailed(operation, () => "by the waiter");
  held.reject(new Error("out of order"));
  await expect(holder).rejects.toThrow("out of order");
  expect(await waiter).toMatchObject({ value: "by the waiter", replayed: false, attempt: 2 });
});

/** What a provider's library throws. */
class CardError extends Error {
  override readonly name = "CardError";
  readonly details = { code: 51 };
}

test.each(["client", "call"])(
  "an error that the %s takes for terminal is stored, and every delivery throws the same",
  async (who) => {
    const classifyError = (error: unknown) => (error instanceof CardError ? "terminal" : "release");
    await using client = await newOnceward(who === "client" ? { classifyError } : {});
    const options = who === "call" ? { ...operation, classifyError } : operation;
    const cause = new CardError("declined");
    const fn = vi.fn(() => {
      throw cause;
    });
    const first = await rejectionOf(client.onceward.run(options, fn));
    const repeat = await rejectionOf(client.onceward.run(options, fn));
    for (const error of [first, repeat]) {
      expect(error).toBeInstanceOf(TerminalError);
      expect(error).toMatchObject({ name: "CardError", message: "declined", details: { code: 51 } });
    }
    expect(first).toMatchObject({ cause });
    expect(fn).toHaveBeenCalledOnce();
    const other = rejectionOf(client.onceward.run({ ...options, key: "order-2" }, () => Promise.reject(1)));
    expect(await other).toBe(1);
  },
);

test("another file under the same key is refused", async () => {
  await using client = await newOnceward();
  const form = (content: string) => {
    const data = new FormData();
    data.append("receipt", new File([content], "receipt.txt"));
    return data;
  };
  const run = (content: string) =>
    client.onceward.run({ ...operation, fingerprint: form(content) }, () => "stored");
  expect(await run("first")).toBe("stored");
  expect(await run("first")).toBe("stored");
  expect(await rejectionOf(run("second"))).toBeInstanceOf(FingerprintMismatchError);
});

test("an error names the claim that it is about, in its fields and its message", async () => {
  await using client = await newOnceward();
  const { onceward } = client;
  // Before the first call: the server keeps policies for a while.
  await setNamespacePolicy(database, client.tenant, "held", { on_lease_expiry: "HOLD" });
  const named = { ...operation, fencingToken: undefined };
  const run = (options: object, fn = vi.fn()) => rejectionOf(onceward.run({ ...operation, ...options }, fn));
  await onceward.calls.claim({ ...operation, fingerprint: new Uint8Array(32) });
  expect(await run({ waitMs: 0 })).toMatchObject({ name: "InProgressError", claim: named });
  expect(await run({ fingerprint: "another" })).toMatchObject({
    name: "FingerprintMismatchError",
    message: expect.stringContaining('(namespace charges, key "order-1")'),
    claim: named,
  });
  expect(await run({ fingerprint: 1n })).toMatchObject({ name: "InvalidRequestError", claim: named });
  const second = { key: "order-2" };
  let fencingToken = 0n;
  const ran = await run(
    second,
    vi.fn((claim) => {
      ({ fencingToken } = claim);
      return 1n;
    }),
  );
  expect(fencingToken).toBeGreaterThan(0n);
  expect(ran).toMatchObject({
    name: "CompletionError",
    message: expect.stringContaining(`(namespace charges, key "order-2", fencing token ${fencingToken})`),
    claim: { ...operation, ...second, fencingToken },
  });
  expect(await run(second)).toMatchObject({ name: "ResultUnavailableError", claim: { ...named, ...second } });
  const held = { namespace: "held", key: "order-1" };
  await onceward.calls.claim(held);
  await endLeases(database, client.tenant);
  expect(await run(held)).toMatchObject({ name: "AmbiguousError", claim: { ...named, ...held } });
});

test("runs that fail together, in one batch, name each its own claim", async () => {
  const apiKey = `ow_${"0".repeat(16)}_${"0".repeat(43)}`;
  await using onceward = createOnceward({ address: `http://127.0.0.1:${server.grpcPort}`, apiKey });
  const keys = ["order-1", "order-2"];
  const errors = await Promise.all(
    keys.map((key) => rejectionOf(onceward.run({ ...operation, key }, vi.fn()))),
  );
  expect(errors).toMatchObject(keys.map((key) => ({ reason: "CREDENTIAL_INVALID", claim: { key } })));
});

test("no error names a malformed key", async () => {
  await using client = await newOnceward();
  const error = await rejectionOf(client.onceward.run({ ...operation, key: "x".repeat(256) }, vi.fn()));
  expect(error).toMatchObject({ reason: "INVALID_REQUEST", claim: undefined });
});

test("a checkpoint and the derived key reach the attempt that takes over", async () => {
  await using client = await newOnceward();
  const keys: string[] = [];
  const failing = client.onceward.run(operation, async (claim) => {
    keys.push(claim.deriveKey("provider"));
    await claim.saveCheckpoint("charged", { charge: "ch_1" });
    throw new Error("crashed");
  });
  await expect(failing).rejects.toThrow("crashed");
  const seen = await client.onceward.run(operation, (claim) => {
    keys.push(claim.deriveKey("provider"));
    return { attempt: claim.attempt, checkpoint: claim.checkpoint };
  });
  expect(seen).toEqual({ attempt: 2, checkpoint: { name: "charged", state: { charge: "ch_1" } } });
  expect(keys[0]).toBe(keys[1]);
});

test("after an expired lease the record is ambiguous under HOLD, until a run accepts that", async () => {
  await using client = await newOnceward();
  await setNamespacePolicy(database, client.tenant, "held", { on_lease_expiry: "HOLD" });
  const ambiguous = { namespace: "held", key: "order-1" };
  await client.onceward.calls.claim({ ...ambiguous, owner: "worker-1" });
  await endLeases(database, client.tenant);
  const fn = vi.fn(() => "reconciled");
  expect(await rejectionOf(client.onceward.run(ambiguous, fn))).toMatchObject({
    name: "AmbiguousError",
    owner: "worker-1",
    attempt: 1,
  });
  expect(fn).not.toHaveBeenCalled();
  expect(await client.onceward.run({ ...ambiguous, acceptAmbiguous: true }, fn)).toBe("reconciled");
});

test("heartbeats prolong the lease while the function runs", async () => {
  await using client = await newOnceward();
  const ends = new Set<string>();
  await client.onceward.run({ ...operation, leaseMs: 1000 }, async () => {
    await vi.waitFor(async () => {
      const [row] = await database.query<{ ends: Date }>(
        "select lease_expires_at as ends from records where tenant_id = $1",
        [client.tenant.id],
      );
      ends.add(String(row?.ends.getTime()));
      expect(ends.size).toBe(3);
    }, 10_000);
  });
});

test("the signal aborts when another holder takes over; the completion says the effect ran", async () => {
  await using client = await newOnceward();
  const reasons: unknown[] = [];
  const run = client.onceward.run({ ...operation, leaseMs: 1000 }, async (claim) => {
    const aborted = new Promise((resolve) => claim.signal.addEventListener("abort", resolve));
    await endLeases(database, client.tenant);
    await client.onceward.calls.claim({ ...operation, owner: "worker-2" });
    await aborted;
    reasons.push(claim.signal.reason);
    return "charged";
  });
  expect(await rejectionOf(run)).toMatchObject({
    name: "CompletionError",
    reason: "CLAIM_SUPERSEDED",
    stored: false,
    effect: { status: "fulfilled", value: "charged" },
  });
  expect(reasons).toMatchObject([{ reason: "CLAIM_SUPERSEDED", claim: { ...operation } }]);
});

test.each<[string, string, Partial<Codec<unknown>>]>([
  ["can't be written", "CODEC_FAILED", { encode: () => JSON.parse("{") }],
  ["can't be read again", "CODEC_FAILED", { decode: () => JSON.parse("{") }],
  [
    "has more metadata than the service takes",
    "INVALID_REQUEST",
    {
      encode: (value) => ({ ...jsonCodec.encode(value), metadata: { note: "x".repeat(5000) } }),
    },
  ],
])("an effect whose value %s is stored as done, and not repeated", async (_, reason, changed) => {
  await using client = await newOnceward();
  const fn = vi.fn(() => "charged");
  const options = { ...operation, codec: { ...jsonCodec, ...changed } };
  const error = await rejectionOf(client.onceward.run<unknown>(options, fn));
  expect(error).toMatchObject({
    name: "CompletionError",
    reason,
    stored: true,
    effect: { value: "charged" },
  });
  expect(await rejectionOf(client.onceward.run<unknown>(options, fn))).toMatchObject({
    reason: "RESULT_LOST",
  });
  expect(fn).toHaveBeenCalledOnce();
});
