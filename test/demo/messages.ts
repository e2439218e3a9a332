import type { CrashPoint, Operation } from "./operations.ts";

/** Where the service is, for a worker that asks it. */
export interface Guard {
  readonly address: string;
  readonly apiKey: string;
}

/** What the queue tells a worker. */
export type ToWorker =
  | {
      readonly kind: "configure";
      readonly providerUrl: string;
      readonly guard: Guard | undefined;
      readonly name: string;
    }
  | { readonly kind: "deliver"; readonly operation: Operation }
  /** The answer to `begins effect`: go on, and stop at this point to be killed, if any. */
  | { readonly kind: "go on"; readonly stopAt: CrashPoint | undefined };

/** What a worker tells the queue. */
export type FromWorker =
  | { readonly kind: "ready" }
  /** The worker has the right to perform the effect, or never asked for it. */
  | { readonly kind: "begins effect" }
  /** The worker has reached the point at which it is to die. */
  | { readonly kind: "reached point" }
  | { readonly kind: "ended"; readonly ending: Ending };

/** How the delivery ended, as the worker sees it. The first two acknowledge it; after the others it comes again. */
export type Ending =
  | { readonly kind: "performed"; readonly receipt: string }
  | { readonly kind: "replayed"; readonly receipt: string }
  | { readonly kind: "in progress"; readonly retryAfterMs: number }
  | { readonly kind: "ambiguous" }
  | { readonly kind: "failed"; readonly message: string };
