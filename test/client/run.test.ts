import {
  type ClientOptions,
  createOnceward,
  FingerprintMismatchError,
  jsonCodec,
  KeyTooOldError,
  type Onceward,
} from "@onceward/client";
import { expect, test, vi } from "vitest";
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

test("an effect whose value can't be read again is stored as done, and not repeated", async () => {
  await using client = await newOnceward();
  const fn = vi.fn(() => "charged");
  const options = { ...operation, codec: { ...jsonCodec, decode: () => JSON.parse("{") } };
  const error = await rejectionOf(client.onceward.run<unknown>(options, fn));
  const effect = { value: "charged" };
  expect(error).toMatchObject({ name: "CompletionError", reason: "CODEC_FAILED", stored: true, effect });
  const repeat = await rejectionOf(client.onceward.run<unknown>(options, fn));
  expect(repeat).toMatchObject({ reason: "RESULT_LOST" });
  expect(fn).toHaveBeenCalledOnce();
});

test("a run whose key is too old is refused at once, with its times and what to do", async () => {
  await using client = await newOnceward({}, { late_keys: "REQUIRE_TIME" });
  const claims = vi.spyOn(client.onceward.calls, "claim");
  const fn = vi.fn();
  const retentionMs = 72 * 3_600_000;
  const keyCreatedAt = new Date(Date.now() - retentionMs - 1000);
  const error = await rejectionOf(client.onceward.run({ ...operation, keyCreatedAt }, fn));
  expect(error).toBeInstanceOf(KeyTooOldError);
  expect(error).toMatchObject({
    keyCreatedAt,
    acceptedUntil: new Date(keyCreatedAt.getTime() + retentionMs),
    claim: operation,
    message: expect.stringContaining("if it did not, repeat it under a new key."),
  });
  expect(claims).toHaveBeenCalledOnce();
  expect(fn).not.toHaveBeenCalled();
});
