import { setTimeout as pause } from "node:timers/promises";
import { connectClient, type TransportName } from "../../support/calls/clients.ts";
import type { Victim } from "./attack.ts";

/** A client with valid calls, which must be served during the attacks. */
export interface Bystander {
  /** Stops the client after its last answer. */
  stop(): Promise<void>;
  readonly calls: number;
  readonly longestMs: number;
  /** Calls that were refused or not answered in time. */
  readonly failures: readonly string[];
}

/** A call that takes longer has failed. */
const PATIENCE_MS = 10_000;
const BETWEEN_CALLS_MS = 10;

/** Starts to claim one key after the other, over both ports. */
export function startBystander({ server, apiKey, tls }: Victim): Bystander {
  const failures: string[] = [];
  let calls = 0;
  let longestMs = 0;
  let stopped = false;

  async function claimOnAndOn(transport: TransportName): Promise<void> {
    const client = connectClient(server, apiKey, transport, tls);
    while (!stopped) {
      const startedAtMs = performance.now();
      const key = `${transport} ${++calls}`;
      try {
        const { outcome } = await client.claim({ namespace: "bystander", key }, { timeoutMs: PATIENCE_MS });
        if (outcome.case !== "claimed") failures.push(`${key}: ${outcome.case}`);
      } catch (error) {
        failures.push(`${key}: ${error}`);
      }
      longestMs = Math.max(longestMs, performance.now() - startedAtMs);
      await pause(BETWEEN_CALLS_MS);
    }
  }

  const done = Promise.all((["native gRPC", "Connect with JSON"] as const).map(claimOnAndOn));
  return {
    get calls() {
      return calls;
    },
    get longestMs() {
      return longestMs;
    },
    failures,
    async stop() {
      stopped = true;
      await done;
    },
  };
}
