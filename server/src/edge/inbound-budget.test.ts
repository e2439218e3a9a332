import { once } from "node:events";
import { Readable } from "node:stream";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { NO_QUOTAS } from "../domain/quotas.ts";
import { makeTenant, type Principal } from "../domain/tenant.ts";
import { createMessageReader } from "./grpc-framing.ts";
import { createInboundBudget, readBody } from "./inbound-budget.ts";

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

test("each connection has its own limit, and a message waits until another one of the connection is released", async () => {
  const connection = createInboundBudget(LIMITS).ofConnection();
  const release = await connection.reserve(one, 40);
  const second = connection.reserve(one, 1);
  expect(second).toBeInstanceOf(Promise);
  release();
  expect(await second).toBeInstanceOf(Function);
});

test("each tenant has its own limit for all its connections, and the rest is left to other tenants", async () => {
  const budget = createInboundBudget(LIMITS);
  await budget.ofConnection().reserve(one, 40);
  await budget.ofConnection().reserve(one, 20);
  expect(budget.ofConnection().reserve(one, 1)).toBeInstanceOf(Promise);
  expect(budget.ofConnection().reserve(two, 40)).toBeInstanceOf(Function);
});

test("all tenants together have a limit", async () => {
  const budget = createInboundBudget(LIMITS);
  for (const id of [1, 2]) await budget.ofConnection().reserve(caller(id), 40);
  const release = await budget.ofConnection().reserve(caller(3), 20);
  const last = budget.ofConnection().reserve(caller(4), 20);
  expect(last).toBeInstanceOf(Promise);
  release();
  expect(await last).toBeInstanceOf(Function);
});

test("a reservation is released once, however often its function is called", async () => {
  const connection = createInboundBudget(LIMITS).ofConnection();
  const release = await connection.reserve(one, 30);
  release();
  release();
  await connection.reserve(one, 40);
  expect(connection.reserve(one, 1)).toBeInstanceOf(Promise);
});

test("a message that gets no memory in time is refused, and so is a message beyond those that may wait", async () => {
  const budget = createInboundBudget(LIMITS);
  const connection = budget.ofConnection();
  await connection.reserve(one, 40);
  const waiting = Array.from({ length: 128 }, () =>
    Promise.resolve(connection.reserve(one, 1)).catch((error: unknown) => error),
  );
  expect(() => connection.reserve(one, 1)).toThrow(refused);
  vi.advanceTimersByTime(LIMITS.maxWaitMs);
  expect(await Promise.all(waiting)).toEqual(Array(128).fill(refused));
  expect(vi.getTimerCount()).toBe(0);
});

test("a body whose sender has left before it is read is CANCELLED", async () => {
  const body = new Readable({ read() {} }).destroy();
  await once(body, "close");
  const reading = readBody(body, createMessageReader(1), createInboundBudget().ofConnection(), one);
  await expect(reading).rejects.toMatchObject({ reason: "CANCELLED" });
});
