import type { Ending } from "./messages.ts";
import type { Operation } from "./operations.ts";

/** Handles one delivery, and resolves to how it ended. */
export type Handler = (operation: Operation) => Promise<Ending>;

/** The effect: one call to the provider, with the key if there is one. Resolves to the provider's receipt. */
export type Charge = (operation: Operation, idempotencyKey: string | undefined) => Promise<string>;

/** Handles every delivery, without Onceward. */
export function handleUnguarded(charge: Charge): Handler {
  return async (operation) => ({ kind: "performed", receipt: await charge(operation, undefined) });
}
