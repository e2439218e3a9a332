import type { Transport } from "@connectrpc/connect";
import { errorFromCall, isUnavailable } from "../errors/mapping.ts";
import type { Connection } from "./transport-options.ts";

/** Long enough for a process to be replaced. */
const FIRST_ABSENCE_MS = 500;
/** Soon enough to share the load again. */
const MAX_ABSENCE_MS = 30_000;

/** The way to one of the service's replicas. */
export interface Replica extends Connection {
  /** Whether a connection is there, or can be opened now. Never rejects. */
  readonly isReachable: () => Promise<boolean>;
}

/** What is known of a replica: it answers; or it did not, and is looked for again no sooner than then. */
type Presence =
  | { readonly kind: "present" }
  | { readonly kind: "absent"; readonly lookAgainAtMs: number }
  | { readonly kind: "looked-for" };

interface Known {
  readonly replica: Replica;
  presence: Presence;
  /** In a row, without an answer between them. */
  failures: number;
}

/**
 * Spreads calls over the service's replicas, each call to the next one. Whoever does not answer gets no calls until it can
 * be connected to again, which is tried beside the calls, seldom and more seldom; the calls that found it away fail, and
 * are repeated by whoever made them. If all are away, calls go to all: somebody has to find out.
 */
export class Replicas implements Transport {
  readonly #replicas: readonly Known[];
  #turn = 0;

  constructor(replicas: readonly Replica[]) {
    this.#replicas = replicas.map((replica) => ({ replica, presence: { kind: "present" }, failures: 0 }));
  }

  unary: Transport["unary"] = async (...call) => {
    const known = this.#next();
    try {
      const response = await known.replica.transport.unary(...call);
      known.failures = 0;
      return response;
    } catch (cause) {
      this.#noticeFailure(known, cause);
      throw cause;
    }
  };

  stream: Transport["stream"] = (...call) => this.#next().replica.transport.stream(...call);

  /** Ends the calls that are open. */
  close(): void {
    for (const { replica } of this.#replicas) replica.close();
  }

  #next(): Known {
    for (const known of this.#replicas) this.#lookFor(known);
    const present = this.#replicas.filter(({ presence }) => presence.kind === "present");
    const candidates = present.length > 0 ? present : this.#replicas;
    this.#turn = (this.#turn + 1) % Number.MAX_SAFE_INTEGER;
    const chosen = candidates[this.#turn % candidates.length];
    if (chosen === undefined) throw new RangeError("there are no replicas");
    return chosen;
  }

  #noticeFailure(known: Known, cause: unknown): void {
    const error = errorFromCall(cause);
    const away = isUnavailable(error) && (error.reason === "NO_ANSWER" || error.reason === "SHUTTING_DOWN");
    // Those that were under way when it went tell nothing new.
    if (!away || known.presence.kind !== "present") return;
    this.#absent(known);
  }

  #absent(known: Known): void {
    const absenceMs = Math.min(MAX_ABSENCE_MS, FIRST_ABSENCE_MS * 2 ** known.failures);
    known.failures++;
    known.presence = { kind: "absent", lookAgainAtMs: performance.now() + absenceMs };
  }

  #lookFor(known: Known): void {
    const { presence, replica } = known;
    if (presence.kind !== "absent" || performance.now() < presence.lookAgainAtMs) return;
    known.presence = { kind: "looked-for" };
    void replica.isReachable().then((reachable) => {
      if (reachable) known.presence = { kind: "present" };
      else this.#absent(known);
    });
  }
}
