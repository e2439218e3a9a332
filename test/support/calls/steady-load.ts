import { randomUUID } from "node:crypto";
import { expect, onTestFinished, vi } from "vitest";
import type { IdempotencyClient } from "./clients.ts";
import { describeError, type SeenError } from "./errors.ts";
import { bytes, success } from "./verbs.ts";

/** Callers that claim and complete one key after another, and continue after errors. */
export interface Load {
  /** The acknowledged completions so far: payload by key. */
  readonly acknowledged: ReadonlyMap<string, string>;
  /** Resolves once so many more completions have been acknowledged. */
  more(completions: number): Promise<void>;
  /** Lets each caller finish its current key; rejects with the first error that no outage explains. */
  stop(): Promise<void>;
}

const CALL_TIMEOUT_MS = 8000;
/** Maximum time of an outage and the recovery from it, on a busy machine. */
const MORE_TIMEOUT_MS = 60_000;
/** Shorter than the server's retry delay, which would make a test slow. */
const RETRY_DELAY_MS = 20;

/**
 * A replica that drains refuses streams that it has not processed, so a call may be repeated; connect has no code for that
 * (https://www.rfc-editor.org/rfc/rfc9113#section-8.7).
 */
const REFUSED_STREAM = "Stream closed with error code NGHTTP2_REFUSED_STREAM";

/** The only errors that an outage of the database, or the end of a replica, may cause. */
export function expectOutageError(error: SeenError): void {
  if (error.message === REFUSED_STREAM) return;
  if (error.code !== "DeadlineExceeded")
    expect(error).toMatchObject({ code: "Unavailable", retryable: true });
}

/** Starts one caller per client; each works on one key at a time. */
export function startLoad(clients: readonly IdempotencyClient[], namespace: string): Load {
  const acknowledged = new Map<string, string>();
  let stopping = false;
  let isAbandoned = false;
  // Stops callers that would not stop retrying after a test that failed before `stop`.
  onTestFinished(() => {
    isAbandoned = true;
  });

  async function persist<Reply>(call: () => Promise<Reply>): Promise<Reply> {
    for (;;) {
      try {
        return await call();
      } catch (error) {
        if (isAbandoned) throw error;
        expectOutageError(describeError(error));
        await new Promise((resolve) => setTimeout(resolve, RETRY_DELAY_MS));
      }
    }
  }

  async function run(client: IdempotencyClient): Promise<void> {
    const options = { timeoutMs: CALL_TIMEOUT_MS };
    while (!stopping && !isAbandoned) {
      const id = { namespace, key: randomUUID() };
      const payload = `paid ${id.key}`;
      const claim = { ...id, claimId: randomUUID() };
      const { outcome } = await persist(() => client.claim(claim, options));
      if (outcome.case !== "claimed") throw new Error(`a fresh key was answered ${outcome.case}`);
      const { fencingToken } = outcome.value;
      await persist(() => client.complete({ ...id, fencingToken, result: success(payload) }, options));
      acknowledged.set(id.key, payload);
    }
  }

  const callers = Promise.all(clients.map(run));
  // `more` and `stop` reject with it.
  callers.catch(() => {
    isAbandoned = true;
  });
  return {
    acknowledged,
    async more(completions) {
      const goal = acknowledged.size + completions;
      // Ends with the callers: a wait that outlived the test would advance the stopped clocks of later ones.
      const reached = vi.waitUntil(() => isAbandoned || acknowledged.size >= goal, {
        timeout: MORE_TIMEOUT_MS,
        interval: 5,
      });
      await Promise.race([reached, callers]);
    },
    async stop() {
      stopping = true;
      await callers;
    },
  };
}

/** Fails unless every acknowledged completion is replayed byte for byte. */
export async function expectReplays(client: IdempotencyClient, namespace: string, load: Load): Promise<void> {
  const keys = [...load.acknowledged.keys()];
  expect(keys.length).toBeGreaterThan(0);
  for (let first = 0; first < keys.length; first += 500) {
    const batch = keys.slice(first, first + 500);
    const { items } = await client.batch({
      items: batch.map((key) => ({ request: { case: "claim", value: { namespace, key } } })),
    });
    const payloads = items.map(({ response }) => {
      const outcome = response.case === "claim" ? response.value.outcome : undefined;
      return outcome?.case === "completed" ? outcome.value.result?.payload : undefined;
    });
    expect(payloads).toEqual(batch.map((key) => bytes(load.acknowledged.get(key) ?? "")));
  }
}
