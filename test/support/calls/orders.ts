import { CompletionError } from "@onceward/client";
import { createTestingOnceward } from "@onceward/client/testing";
import { expect } from "vitest";

const ORDER = { namespace: "orders", key: "order-1" };
/** The default lease of a namespace. */
const LEASE_MS = 30_000;

/** Runs an order's function under a claim. */
export async function withinOrder(place: () => Promise<unknown>): Promise<void> {
  await using testing = createTestingOnceward();
  await testing.onceward.run(ORDER, place);
}

/** Runs an order's function twice, as if the process died between its effects and the claim's completion. */
export async function crashAndRepeat(place: () => Promise<unknown>): Promise<void> {
  await using testing = createTestingOnceward();
  testing.faults.failNext("complete", "INTERNAL");
  await expect(testing.onceward.run(ORDER, place)).rejects.toThrow(CompletionError);
  testing.clock.advance(LEASE_MS);
  await testing.onceward.run(ORDER, place);
}
