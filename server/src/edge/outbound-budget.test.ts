import { EventEmitter } from "node:events";
import type { ServerHttp2Stream } from "node:http2";
import { expect, test } from "vitest";
import { createOutboundBudget, createOutboundTotal } from "./outbound-budget.ts";

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
