import { EventEmitter, once } from "node:events";
import type { ServerHttp2Stream } from "node:http2";
import { PassThrough } from "node:stream";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { MAX_MESSAGE_BYTES } from "../../domain/limits.ts";
import { NO_QUOTAS } from "../../domain/quotas.ts";
import { makeTenant, type Principal } from "../../domain/tenant.ts";
import { IdempotencyService } from "../../gen/onceward/v1/idempotency_pb.ts";
import {
  type ConnectionInboundBudget,
  createInboundBudget,
  createOutboundBudget,
  createOutboundTotal,
  createReplyBudget,
  createRequestBudget,
  outboundOfGrpcConnection,
  outboundOfHttpConnection,
  reserveReply,
} from "./memory-budgets.ts";
import { BUDGET_SHARE } from "./memory-limit.ts";

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

describe("inbound", () => {
  const LIMITS = { maxBytes: 100, maxTenantBytes: 60, maxConnectionBytes: 40, maxWaitMs: 5000 };

  beforeEach(() => {
    vi.useFakeTimers();
  });

  afterEach(() => {
    vi.useRealTimers();
  });

  const [one, two] = [caller(1), caller(2)];
  const refused = expect.objectContaining({ reason: "OVERLOADED" });

  test("each connection has its own limit; a message waits until another one is released", async () => {
    const connection = createInboundBudget(LIMITS).ofConnection();
    const release = await connection.reserve(one, 40);
    const second = connection.reserve(one, 1);
    expect(second).toBeInstanceOf(Promise);
    release();
    expect(await second).toBeInstanceOf(Function);
  });

  test("each tenant has a limit for all its connections; the rest is left to others", async () => {
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

  test("by default a connection has 9 MiB, a tenant 12 and all together 24", () => {
    const mib = 1024 * 1024;
    const budget = createInboundBudget();
    const connection = budget.ofConnection();
    expect(connection.reserve(one, 9 * mib)).toBeInstanceOf(Function);
    // Refused after five seconds without memory; no test waits for it.
    const waits = (reservation: unknown) => {
      expect(reservation).toBeInstanceOf(Promise);
      (reservation as Promise<unknown>).catch(() => {});
    };
    waits(connection.reserve(one, 1));
    expect(budget.ofConnection().reserve(one, 3 * mib)).toBeInstanceOf(Function);
    waits(budget.ofConnection().reserve(one, 1));
    expect(budget.ofConnection().reserve(two, 9 * mib)).toBeInstanceOf(Function);
    expect(budget.ofConnection().reserve(two, 3 * mib)).toBeInstanceOf(Function);
    waits(budget.ofConnection().reserve(caller(3), 1));
  });

  test("a message without memory in time, or beyond those that may wait, is refused", async () => {
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
});

describe("outbound", () => {
  test("the budget is exhausted by too many replies, and available again when a stream closes", () => {
    const budget = createOutboundBudget(100, createOutboundTotal());
    const [one, other] = [new EventEmitter() as ServerHttp2Stream, new EventEmitter() as ServerHttp2Stream];
    budget.countUntilClosed(one, 60);
    expect(budget.isExhausted()).toBe(false);
    budget.countUntilClosed(other, 60);
    expect(budget.isExhausted()).toBe(true);
    one.emit("close");
    expect(budget.isExhausted()).toBe(false);
  });

  test("one of a stream's many replies counts until it is flushed", () => {
    const budget = createOutboundBudget(100, createOutboundTotal());
    const written: (() => void)[] = [];
    const stream = { write: (_: Buffer, done: () => void) => written.push(done) };
    budget.write(stream as unknown as ServerHttp2Stream, Buffer.alloc(60));
    budget.write(stream as unknown as ServerHttp2Stream, Buffer.alloc(60));
    expect(budget.isExhausted()).toBe(true);
    written[0]?.();
    expect(budget.isExhausted()).toBe(false);
  });

  test("the unflushed bytes of all connections have a limit too, at which calls are refused", () => {
    const total = createOutboundTotal(100);
    const [one, other] = [createOutboundBudget(80, total, 10), createOutboundBudget(80, total, 10)];
    const stream = new EventEmitter();
    one.countUntilClosed(stream, 70);
    other.admit();
    other.countUntilClosed(new EventEmitter(), 40);
    expect([one.isExhausted(), other.isExhausted()]).toEqual([true, true]);
    expect(() => other.admit()).toThrow(expect.objectContaining({ reason: "OVERLOADED" }));
    stream.emit("close");
    other.admit();
  });

  test("the calls of a connection that reads are not refused because other connections do not read", () => {
    const total = createOutboundTotal(100);
    const [one, other] = [createOutboundBudget(200, total, 10), createOutboundBudget(200, total, 10)];
    one.countUntilClosed(new EventEmitter(), 150);
    other.countUntilClosed(new EventEmitter(), 9);
    other.admit();
    expect([one.isExhausted(), other.isExhausted()]).toEqual([true, false]);
  });
});

test("a port has a limit of open requests, an address half of it; each that closes frees one", () => {
  const budget = createRequestBudget(4, 1000);
  const [first, second] = [budget.ofConnection("10.0.0.1"), budget.ofConnection("10.0.0.1")];
  const close = second.open(1);
  expect([first.open(1), first.open(1)]).toEqual([expect.any(Function), undefined]);
  const other = budget.ofConnection("10.0.0.2");
  expect([other.open(1), other.open(1), other.open(1)].filter(Boolean)).toHaveLength(2);
  expect(budget.ofConnection("10.0.0.3").open(1)).toBeUndefined();
  close?.();
  expect([first.open(1), first.open(1)]).toEqual([expect.any(Function), undefined]);
});

test("the headers of open requests have room, of which one address has half", () => {
  const budget = createRequestBudget(100, 1000);
  const [first, other] = [budget.ofConnection("10.0.0.1"), budget.ofConnection("10.0.0.2")];
  const close = first.open(400);
  expect([first.open(101), first.open(100)]).toEqual([undefined, expect.any(Function)]);
  expect(other.open(500)).toBeInstanceOf(Function);
  expect(budget.ofConnection("10.0.0.3").open(1)).toBeUndefined();
  close?.();
  expect(first.open(400)).toBeInstanceOf(Function);
});

test("the replies of batches that one tenant does not read leave room for another tenant", async () => {
  const batch = IdempotencyService.method.batch;
  const budget = createReplyBudget({
    maxBytes: 64 * MAX_MESSAGE_BYTES,
    maxTenantBytes: 2 * MAX_MESSAGE_BYTES,
    maxConnectionBytes: 2 * MAX_MESSAGE_BYTES,
    maxWaitMs: 1,
  });
  const [unread, read] = [new PassThrough(), new PassThrough()];
  await reserveReply(budget.ofConnection(), caller(1), batch, unread);
  await reserveReply(budget.ofConnection(), caller(1), batch, read);
  await expect(reserveReply(budget.ofConnection(), caller(1), batch, unread)).rejects.toThrow(
    "unread replies",
  );
  await reserveReply(budget.ofConnection(), caller(2), batch, unread);
  read.destroy();
  await once(read, "close");
  await reserveReply(budget.ofConnection(), caller(1), batch, unread);
});

test.each([
  ["a gRPC", outboundOfGrpcConnection, 256],
  ["an HTTP/1.1", outboundOfHttpConnection, 32],
])("by default %s connection has %3$s MiB of unread replies, in proportion to the memory", (_, of, mib) => {
  const budget = of(createOutboundTotal());
  const bytes = Math.ceil(mib * 1024 * 1024 * BUDGET_SHARE);
  budget.countUntilClosed(new EventEmitter(), bytes - 1);
  expect(budget.isExhausted()).toBe(false);
  budget.countUntilClosed(new EventEmitter(), 1);
  expect(budget.isExhausted()).toBe(true);
});

test("replies have 384 MiB; batches 64 a process, 32 a tenant and 16 a connection", () => {
  expect(createOutboundTotal().maxBytes).toBe(384 * 1024 * 1024 * BUDGET_SHARE);
  const budget = createReplyBudget();
  const reply = 4 * 1024 * 1024 * BUDGET_SHARE;
  const expectFull = (connection: ConnectionInboundBudget, tenant: number) => {
    const waiting = connection.reserve(caller(tenant), 1);
    expect(waiting).toBeInstanceOf(Promise);
    Promise.resolve(waiting).catch(() => {});
  };
  for (const [tenant, next] of [
    [1, 1],
    [2, 3],
  ] as const) {
    for (const connection of [budget.ofConnection(), budget.ofConnection()]) {
      for (let n = 0; n < 16; n++) expect(connection.reserve(caller(tenant), reply)).toBeInstanceOf(Function);
      expectFull(connection, tenant);
    }
    expectFull(budget.ofConnection(), next);
  }
});

test.each([
  ["32,768 open requests", 0, 16_384],
  ["64 MiB of their headers", 16_384, 2048],
])("by default a port has %s, in proportion to the memory", (_name, bytes, ofAddress) => {
  const budget = createRequestBudget();
  const opened = [1, 2, 3].map((each) => {
    const connection = budget.ofConnection(`10.0.0.${each}`);
    let count = 0;
    while (connection.open(bytes) !== undefined) count++;
    return count;
  });
  expect(opened).toEqual([ofAddress * BUDGET_SHARE, ofAddress * BUDGET_SHARE, 0]);
});
