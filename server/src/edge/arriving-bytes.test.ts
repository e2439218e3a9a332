import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { NO_QUOTAS } from "../domain/quotas.ts";
import { makeTenant, type Principal } from "../domain/tenant.ts";
import { createArrivingBytes } from "./arriving-bytes.ts";

const LIMITS = { maxBytes: 100, maxTenantBytes: 60, maxConnectionBytes: 40, maxWaitMs: 5000 };

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

function caller(id: number): Principal {
  const tenant = makeTenant({
    id,
    name: `tenant-${id}`,
    suspended: false,
    uid: "",
    cacheEpoch: { scope: "", askedAtMs: 0, databaseTimeMs: 0 },
    overrides: {},
    quotas: NO_QUOTAS,
  });
  return {
    role: "CALLER",
    actor: "a key",
    tenant,
    namespaces: undefined,
    goodUntilMs: Number.POSITIVE_INFINITY,
  };
}

const [one, two] = [caller(1), caller(2)];
const refused = expect.objectContaining({ reason: "OVERLOADED" });

test("a connection has no more than its part, and waits for what it gives back", async () => {
  const connection = createArrivingBytes(LIMITS).ofConnection();
  const giveBack = await connection.reserve(one, 40);
  const second = connection.reserve(one, 1);
  expect(second).toBeInstanceOf(Promise);
  giveBack();
  expect(await second).toBeInstanceOf(Function);
});

test("a tenant has no more than its part, however many connections it has, and leaves the rest to others", async () => {
  const arriving = createArrivingBytes(LIMITS);
  await arriving.ofConnection().reserve(one, 40);
  await arriving.ofConnection().reserve(one, 20);
  expect(arriving.ofConnection().reserve(one, 1)).toBeInstanceOf(Promise);
  expect(arriving.ofConnection().reserve(two, 40)).toBeInstanceOf(Function);
});

test("all tenants have no more than there is", async () => {
  const arriving = createArrivingBytes(LIMITS);
  for (const id of [1, 2]) await arriving.ofConnection().reserve(caller(id), 40);
  const giveBack = await arriving.ofConnection().reserve(caller(3), 20);
  const last = arriving.ofConnection().reserve(caller(4), 20);
  expect(last).toBeInstanceOf(Promise);
  giveBack();
  expect(await last).toBeInstanceOf(Function);
});

test("room is given back once, however often it is asked for", async () => {
  const connection = createArrivingBytes(LIMITS).ofConnection();
  const giveBack = await connection.reserve(one, 30);
  giveBack();
  giveBack();
  await connection.reserve(one, 40);
  expect(connection.reserve(one, 1)).toBeInstanceOf(Promise);
});

test("a message that finds no room in time is refused, and so is one more than may wait", async () => {
  const arriving = createArrivingBytes(LIMITS);
  const connection = arriving.ofConnection();
  await connection.reserve(one, 40);
  const waiting = Array.from({ length: 128 }, () =>
    Promise.resolve(connection.reserve(one, 1)).catch((error: unknown) => error),
  );
  expect(() => connection.reserve(one, 1)).toThrow(refused);
  vi.advanceTimersByTime(LIMITS.maxWaitMs);
  expect(await Promise.all(waiting)).toEqual(Array(128).fill(refused));
  expect(vi.getTimerCount()).toBe(0);
});
