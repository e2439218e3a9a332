import { AmbiguousError, createOnceward, InProgressError } from "@onceward/client";
import type { Guard } from "./messages.ts";
import type { Charge, Handler } from "./unguarded.ts";

/** The shortest lease: a key whose worker was killed is free again after a second. */
const LEASE_MS = 1000;

/** Handles deliveries through Onceward. */
export function handleGuarded(charge: Charge, guard: Guard, owner: string): Handler {
  const onceward = createOnceward({ ...guard, owner });
  return async (operation) => {
    const { id, event, payload } = operation;
    const options = {
      namespace: "github-webhooks",
      key: id,
      fingerprint: { event, payload },
      leaseMs: LEASE_MS,
      // Another worker holds the claim, or died with it: this consumer returns the delivery instead of
      // waiting.
      waitMs: 0,
    };
    try {
      const { value, replayed } = await onceward.runDetailed(options, (claim) =>
        charge(operation, claim.deriveKey("provider")),
      );
      return { kind: replayed ? "replayed" : "performed", receipt: value };
    } catch (error) {
      if (error instanceof InProgressError)
        return { kind: "in progress", retryAfterMs: error.retryDelayMs ?? 0 };
      if (error instanceof AmbiguousError) return { kind: "ambiguous" };
      throw error;
    }
  };
}
