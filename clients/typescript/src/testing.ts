/**
 * An Onceward in memory for unit tests: the real client over an implementation of the service that needs no server, no
 * database and no sleeping. It answers the client's calls as the server does: the same contract tests hold for both.
 *
 * ```ts
 * import { CompletionError, type Onceward } from "@onceward/client";
 * import { createTestingOnceward } from "@onceward/client/testing";
 * import { expect, test, vi } from "vitest";
 *
 * const order = { id: "order-1", cents: 100 };
 * const newBank = () => ({ charge: vi.fn(async (cents: number, key: string) => ({ cents, key })) });
 *
 * // The code under test.
 * const chargeOrder = (onceward: Onceward, bank: ReturnType<typeof newBank>) =>
 *   onceward.run({ namespace: "charges", key: order.id, fingerprint: order }, (claim) =>
 *     bank.charge(order.cents, claim.deriveKey("bank")),
 *   );
 *
 * test("an order that is delivered twice at once is charged once", async () => {
 *   await using testing = createTestingOnceward();
 *   const bank = newBank();
 *   const deliveries = [chargeOrder(testing.onceward, bank), chargeOrder(testing.onceward, bank)];
 *   const [first, second] = await Promise.all(deliveries);
 *   expect(second).toEqual(first);
 *   expect(bank.charge).toHaveBeenCalledOnce();
 *   expect(testing.counts).toMatchObject({ granted: 1, replayed: 1 });
 * });
 *
 * test("after a crash between the charge and its completion, the bank gets the same key again", async () => {
 *   await using testing = createTestingOnceward();
 *   const bank = newBank();
 *   testing.faults.failNext("complete", "INTERNAL");
 *   await expect(chargeOrder(testing.onceward, bank)).rejects.toThrow(CompletionError);
 *   testing.clock.advance(30_000);
 *   await chargeOrder(testing.onceward, bank);
 *   const [first, second] = bank.charge.mock.calls;
 *   expect(second).toEqual(first);
 * });
 * ```
 *
 * @module
 */

export type { TestingClock } from "./testing/clock.ts";
export type { ClaimCounts, TestingOptions } from "./testing/onceward.ts";
export { createTestingOnceward, type TestingOnceward } from "./testing/onceward.ts";
export type { TestingPolicy } from "./testing/policy.ts";
export type { RefusalReason } from "./testing/refusal.ts";
