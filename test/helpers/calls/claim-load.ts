import { Code, ConnectError } from "@connectrpc/connect";
import type { IdempotencyClient } from "./clients.ts";
import { granted } from "./records.ts";

/** Callers that claim one key after another until they are told to stop. */
export interface Load {
  /** Tokens of the claims that were acknowledged, by key. */
  readonly acknowledged: ReadonlyMap<string, bigint>;
  /** Every error that a caller saw. */
  readonly errors: readonly ConnectError[];
  /** Resolves once so many claims were acknowledged since the load began. */
  untilAcknowledged(count: number): Promise<void>;
  /** No caller begins another claim; resolves once all have ended. */
  stop(): Promise<void>;
}

/** What a load needs of a client. */
export type Claimant = Pick<IdempotencyClient, "claim">;

/** What a caller does after an error. */
export type AfterError = "stop" | "retry UNAVAILABLE";

/** Claims fresh keys, each caller one at a time; a retry brings the same claim id. */
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

  /** False if the caller has to stop. */
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
 * Whether an error is UNAVAILABLE, said by the server or by the client's own library of its connection. connect-node has
 * other codes for the latter: a connection that was reset is Aborted or Internal, and a stream that the server's GOAWAY
 * says was never looked at is Internal too.
 */
export function saysUnavailable({ code, message, cause }: ConnectError): boolean {
  return code === Code.Unavailable || LOST_CONNECTION.test(`${message} ${cause}`);
}

const LOST_CONNECTION = /NGHTTP2_REFUSED_STREAM|ECONNRESET|EPIPE|socket hang up/;
