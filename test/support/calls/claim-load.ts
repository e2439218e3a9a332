import { Code, ConnectError } from "@connectrpc/connect";
import type { IdempotencyClient } from "./clients.ts";
import { granted } from "./records.ts";

/** Callers that claim one key after another until `stop`. */
export interface Load {
  /** Tokens of the claims that were acknowledged, by key. */
  readonly acknowledged: ReadonlyMap<string, bigint>;
  /** Every error of a call. */
  readonly errors: readonly ConnectError[];
  /** Resolves once so many claims have been acknowledged since the start. */
  untilAcknowledged(count: number): Promise<void>;
  /** Stops each caller after its current claim; resolves once all have ended. */
  stop(): Promise<void>;
}

/** The RPCs that a load calls. */
export type Claimant = Pick<IdempotencyClient, "claim">;

/** What a caller does after an error. */
export type AfterError = "stop" | "retry UNAVAILABLE";

/** Claims new keys, each caller one at a time; a retry has the same claim id. */
export function startLoad(client: Claimant, callers: number, afterError: AfterError): Load {
  const acknowledged = new Map<string, bigint>();
  const errors: ConnectError[] = [];
  const milestones: { readonly count: number; readonly resolve: () => void }[] = [];
  let stopping = false;

  async function run(caller: number): Promise<void> {
    for (let i = 0; !stopping; i++) {
      const key = `caller-${caller}-${i}`;
      if (!(await claimOnce(key))) return;
      for (const { count, resolve } of milestones) if (acknowledged.size >= count) resolve();
    }
  }

  /** Returns false if the caller must stop. */
  async function claimOnce(key: string): Promise<boolean> {
    for (;;) {
      try {
        const { fencingToken } = granted(await client.claim({ namespace: "charges", key, claimId: key }));
        acknowledged.set(key, fencingToken);
        return true;
      } catch (error) {
        if (!(error instanceof ConnectError)) throw error;
        errors.push(error);
        if (afterError === "stop" || !saysUnavailable(error) || stopping) return false;
      }
    }
  }

  const running = Promise.all(Array.from({ length: callers }, (_, caller) => run(caller)));
  return {
    acknowledged,
    errors,
    untilAcknowledged: (count) =>
      Promise.race([
        new Promise<void>((resolve) => milestones.push({ count, resolve })),
        running.then(() => {
          throw new Error(`all callers stopped: ${errors.map(({ message }) => message).join("; ")}`);
        }),
      ]),
    async stop() {
      stopping = true;
      await running;
    },
  };
}

/**
 * Returns whether an error is UNAVAILABLE, from the server or from the client's library about its connection.
 * For the latter, connect-node has other codes: a reset connection is Aborted or Internal, and a stream that
 * the server's GOAWAY excludes as not processed is Internal.
 */
export function saysUnavailable({ code, message, cause }: ConnectError): boolean {
  return code === Code.Unavailable || LOST_CONNECTION.test(`${message} ${cause}`);
}

const LOST_CONNECTION = /NGHTTP2_REFUSED_STREAM|ECONNRESET|EPIPE|socket hang up/;
