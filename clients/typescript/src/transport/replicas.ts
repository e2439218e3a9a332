import type { Transport } from "@connectrpc/connect";
import { errorFromCall, isUnavailable } from "../errors/mapping.ts";
import type { Connection } from "./transport-options.ts";

/** Long enough for a process to be replaced. */
const FIRST_PROBE_DELAY_MS = 500;
/** Short enough that a replica that is back shares the load again soon. */
const MAX_PROBE_DELAY_MS = 30_000;

/** The connection to one of the service's replicas. */
export interface Replica extends Connection {
  /** Resolves with whether a connection is open, or can be opened now. Never rejects. */
  readonly isReachable: () => Promise<boolean>;
}

/** Whether a replica gets calls. One that is down is probed again, no sooner than at `probeAtMs`. */
type Health =
  | { readonly kind: "up" }
  | { readonly kind: "down"; readonly probeAtMs: number }
  | { readonly kind: "probing" };

interface ReplicaState {
  readonly replica: Replica;
  health: Health;
  /** Consecutive failures. */
  failures: number;
}

/**
 * Spreads calls over the service's replicas in turn.
 *
 * A replica that does not answer gets no calls until a probe can connect to it again. Probes run beside the calls, at
 * growing intervals. The calls that found the replica down fail, and `retrying` repeats them. If all replicas are down,
 * calls go to all of them, because only a call can find one that is up.
 */
export class Replicas implements Transport {
  readonly #states: readonly ReplicaState[];
  #turn = 0;

  constructor(replicas: readonly Replica[]) {
    this.#states = replicas.map((replica) => ({ replica, health: { kind: "up" }, failures: 0 }));
  }

  unary: Transport["unary"] = async (...call) => {
    const state = this.#next();
    try {
      const response = await state.replica.transport.unary(...call);
      state.failures = 0;
      return response;
    } catch (cause) {
      this.#noteFailure(state, cause);
      throw cause;
    }
  };

  stream: Transport["stream"] = (...call) => this.#next().replica.transport.stream(...call);

  /** Closes all connections; calls in flight fail. */
  close(): void {
    for (const { replica } of this.#states) replica.close();
  }

  #next(): ReplicaState {
    for (const state of this.#states) this.#probeIfDue(state);
    const up = this.#states.filter(({ health }) => health.kind === "up");
    const candidates = up.length > 0 ? up : this.#states;
    this.#turn = (this.#turn + 1) % Number.MAX_SAFE_INTEGER;
    const chosen = candidates[this.#turn % candidates.length];
    if (chosen === undefined) throw new RangeError("there are no replicas");
    return chosen;
  }

  #noteFailure(state: ReplicaState, cause: unknown): void {
    const error = errorFromCall(cause);
    const isDown = isUnavailable(error) && (error.reason === "NO_ANSWER" || error.reason === "SHUTTING_DOWN");
    // Calls that were in flight when the replica went down bring no news.
    if (!isDown || state.health.kind !== "up") return;
    this.#markDown(state);
  }

  #markDown(state: ReplicaState): void {
    const delayMs = Math.min(MAX_PROBE_DELAY_MS, FIRST_PROBE_DELAY_MS * 2 ** state.failures);
    state.failures++;
    state.health = { kind: "down", probeAtMs: performance.now() + delayMs };
  }

  #probeIfDue(state: ReplicaState): void {
    const { health, replica } = state;
    if (health.kind !== "down" || performance.now() < health.probeAtMs) return;
    state.health = { kind: "probing" };
    void replica.isReachable().then((reachable) => {
      if (reachable) state.health = { kind: "up" };
      else this.#markDown(state);
    });
  }
}
