import { createOnceward, InvalidRequestError, KeyTooOldError, newKey } from "@onceward/client";
import { expect, onTestFinished, test, vi } from "vitest";
import { uuidV7At } from "../support/calls/key-times.ts";
import { createTenant, setNamespacePolicy } from "../support/servers/tenants.ts";
import { useServer } from "../support/servers/use-server.ts";

const { database, server } = useServer();

const namespace = "charges";
const RETENTION_MS = 72 * 3_600_000;

/** A client of a new tenant whose namespace refuses late keys. */
async function newOnceward() {
  const tenant = await createTenant(database);
  await setNamespacePolicy(database, tenant, namespace, { late_keys: "REQUIRE_TIME" });
  const onceward = createOnceward({
    address: `http://127.0.0.1:${server.grpcPort}`,
    apiKey: tenant.apiKey,
  });
  onTestFinished(() => onceward.close());
  return onceward;
}

test("a run whose key is too old is refused at once, with its times and what to do", async () => {
  const onceward = await newOnceward();
  const claims = vi.spyOn(onceward.calls, "claim");
  const fn = vi.fn();
  const keyCreatedAt = new Date(Date.now() - RETENTION_MS - 1000);
  const error = await onceward.run({ namespace, key: "order-1", keyCreatedAt }, fn).catch((error) => error);
  expect(error).toBeInstanceOf(KeyTooOldError);
  expect(error).toMatchObject({
    keyCreatedAt,
    acceptedUntil: new Date(keyCreatedAt.getTime() + RETENTION_MS),
    claim: { namespace, key: "order-1" },
    message: expect.stringContaining(
      "Find out whether it happened; if it did not, repeat it under a new key.",
    ),
  });
  expect(claims).toHaveBeenCalledOnce();
  expect(fn).not.toHaveBeenCalled();
});

test("a key of newKey runs and is replayed, and one that was made long ago is refused", async () => {
  const onceward = await newOnceward();
  const fn = vi.fn(() => "charged");
  const key = newKey();
  for (let delivery = 0; delivery < 2; delivery++) {
    expect(await onceward.run({ namespace, key }, fn)).toBe("charged");
  }
  const late = { namespace, key: uuidV7At(Date.now() - RETENTION_MS - 1000) };
  await expect(onceward.run(late, fn)).rejects.toThrow(KeyTooOldError);
  expect(fn).toHaveBeenCalledOnce();
});

test("a wrapped function has the time of its input, and a key without a time is refused", async () => {
  const charge = (await newOnceward())
    .namespace(namespace)
    .wrap(({ id }: { readonly id: string; readonly createdAt?: Date }) => id, {
      key: ({ id }) => id,
      keyCreatedAt: ({ createdAt }) => createdAt,
    });
  expect(await charge({ id: "order-1", createdAt: new Date() })).toBe("order-1");
  await expect(charge({ id: "order-2", createdAt: new Date(0) })).rejects.toThrow(KeyTooOldError);
  await expect(charge({ id: "order-3" })).rejects.toThrow(InvalidRequestError);
});
