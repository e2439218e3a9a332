import type { CrashPoint, Operation } from "./operations.ts";

/** How a worker reaches the service. */
export interface Guard {
  readonly address: string;
  readonly apiKey: string;
}

/** Messages from the queue to a worker. */
export type ToWorker =
  | {
      readonly kind: "configure";
      readonly providerUrl: string;
      readonly guard: Guard | undefined;
      readonly name: string;
    }
  | { readonly kind: "deliver"; readonly operation: Operation }
  /** The answer to `begins effect`: continue, and stop at this point to be killed, if there is one. */
  | { readonly kind: "continue"; readonly stopAt: CrashPoint | undefined };

/** Messages from a worker to the queue. */
export type FromWorker =
  | { readonly kind: "ready" }
  /** The worker was granted the claim, or works without Onceward. */
  | { readonly kind: "begins effect" }
  /** The worker has reached the step before which the demo kills it. */
  | { readonly kind: "reached point" }
  | { readonly kind: "ended"; readonly ending: Ending };

/** How the delivery ended. The first two acknowledge it; after the others it is delivered again. */
export type Ending =
  | { readonly kind: "performed"; readonly receipt: string }
  | { readonly kind: "replayed"; readonly receipt: string }
  | { readonly kind: "in progress"; readonly retryAfterMs: number }
  | { readonly kind: "ambiguous" }
  | { readonly kind: "failed"; readonly message: string };
