import { writeCheckpoint } from "./checkpoint.ts";
import { deriveKey } from "./derive-key.ts";
import type { RunningClaim } from "./held-claim.ts";

/** What the function gets where the service could not be asked and the caller goes on without it: nothing holds it. */
export class UnguardedClaim implements RunningClaim {
  readonly guarded = false;
  readonly namespace: string;
  readonly key: string;
  readonly fencingToken = 0n;
  readonly attempt = 0;
  readonly checkpoint = undefined;
  /** Never aborts: there is no lease to lose. */
  readonly signal: AbortSignal = new AbortController().signal;

  constructor({ namespace, key }: { readonly namespace: string; readonly key: string }) {
    this.namespace = namespace;
    this.key = key;
  }

  async saveCheckpoint(name: string, state?: unknown): Promise<void> {
    writeCheckpoint(name, state);
  }

  deriveKey(label: string): string {
    return deriveKey(this.namespace, this.key, label);
  }

  async complete(): Promise<undefined> {}

  async release(): Promise<void> {}

  abandon(): void {}

  end(): void {}
}
