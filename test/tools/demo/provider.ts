import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import type { Random } from "../../helpers/random.ts";

/** The effects and calls that the provider counted. */
export interface ProviderCounts {
  readonly calls: number;
  /** Effects by operation id. */
  readonly effectsByOperation: ReadonlyMap<string, number>;
  /** Calls with the key of an earlier call, answered without a second effect. */
  readonly absorbed: number;
}

/** The side effect: a service that charges, sends or ships, and cannot undo it. */
export interface Provider {
  readonly url: string;
  /** Returns the counts since the last call of this; waits for calls in progress. */
  takeCounts(): Promise<ProviderCounts>;
  /** Forgets the keys of all calls, as payment providers do after a day. */
  forgetKeys(): void;
  close(): Promise<void>;
}

const MIN_LATENCY_MS = 2;
const LATENCY_SPREAD_MS = 8;

/**
 * A provider on a loopback port. Like real payment providers it honours the header `Idempotency-Key`: the
 * first call with a key has the effect, later ones get the first one's answer. A call without a key always
 * has an effect.
 */
export async function startProvider(random: Random): Promise<Provider> {
  let calls = 0;
  let absorbed = 0;
  let effectsByOperation = new Map<string, number>();
  const receiptsByKey = new Map<string, Promise<string>>();
  const underWay = new Set<Promise<string>>();

  async function perform(operationId: string): Promise<string> {
    await sleep(MIN_LATENCY_MS + random.next() * LATENCY_SPREAD_MS);
    const effects = (effectsByOperation.get(operationId) ?? 0) + 1;
    effectsByOperation.set(operationId, effects);
    return `${operationId}/effect-${effects}`;
  }

  async function answer(request: IncomingMessage): Promise<string> {
    const operationId = await text(request);
    calls++;
    const key = request.headers["idempotency-key"]?.toString();
    const known = key === undefined ? undefined : receiptsByKey.get(key);
    if (known !== undefined) {
      absorbed++;
      return await known;
    }
    const receipt = perform(operationId);
    if (key !== undefined) receiptsByKey.set(key, receipt);
    underWay.add(receipt);
    return await receipt.finally(() => underWay.delete(receipt));
  }

  const server = createServer((request, response) => {
    // A caller that was killed during its call gets no answer; the effect happens anyway.
    answer(request).then(
      (receipt) => response.end(receipt),
      () => response.destroy(),
    );
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async takeCounts() {
      await Promise.all(underWay);
      const counts = { calls, absorbed, effectsByOperation };
      calls = 0;
      absorbed = 0;
      effectsByOperation = new Map();
      return counts;
    },
    forgetKeys: () => receiptsByKey.clear(),
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}
