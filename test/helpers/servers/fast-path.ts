import { randomUUID } from "node:crypto";
import { expect } from "vitest";
import type { ClaimResponse } from "../../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import type { Addresses } from "../../../server/src/server.ts";
import type { IdempotencyClient } from "../calls/clients.ts";
import { granted } from "../calls/records.ts";
import { bytes, ORDER, success } from "../calls/verbs.ts";
import type { TestRedis } from "../redis/redis.ts";
import { readMetrics } from "./metrics.ts";

/** So many repeats, and a namespace is one where repeats are frequent; some to spare. */
const REPEATS = 15;
const PATIENCE = { timeout: 30_000, interval: 10 };

/** Lets a server see that claims of a namespace are often repeats, so that it asks Redis there. */
export async function repeatOften(client: IdempotencyClient, { namespace } = ORDER): Promise<void> {
  const id = { namespace, key: `repeated-${randomUUID()}` };
  const { fencingToken } = granted(await client.claim(id));
  await client.complete({ ...id, fencingToken, result: success("repeated") });
  for (let repeat = 0; repeat < REPEATS; repeat++) await client.claim(id);
}

/** Where a server found the answers of its claims so far. */
export async function countLooks(server: Addresses, layer: string, result: string): Promise<number> {
  const metrics = await readMetrics(server);
  return metrics.get(`onceward_cache_requests_total{layer="${layer}",result="${result}"}`) ?? 0;
}

/** Claims again and again until a copy in Redis answers, and answers what it did. */
export async function claimFromRedis(
  server: Addresses,
  client: IdempotencyClient,
  id = ORDER,
): Promise<ClaimResponse> {
  const hits = await countLooks(server, "redis", "hit");
  let response: ClaimResponse | undefined;
  await expect
    .poll(async () => {
      response = await client.claim(id);
      return countLooks(server, "redis", "hit");
    }, PATIENCE)
    .toBeGreaterThan(hits);
  if (response === undefined) throw new Error("there was no claim");
  return response;
}

/** Resolves once the service does, or doesn't do, without Redis. */
export async function untilBypassed(server: Addresses, is: boolean): Promise<void> {
  const name = 'onceward_degraded{reason="redis_bypassed"}';
  await expect.poll(async () => (await readMetrics(server)).get(name), PATIENCE).toBe(is ? 1 : 0);
}

/** Names of the copies of a key that are in Redis; waits until there are so many. */
export async function copiesOf(redis: TestRedis, key: string, count: number): Promise<string[]> {
  const find = async () => ((await redis.command("keys", `onceward:*${key}`)) as Buffer[]).map(String);
  await expect.poll(find, PATIENCE).toHaveLength(count);
  return find();
}

/** Callers that claim, complete and repeat; whatever fails, or is answered wrongly, ends them. */
export interface Repeats {
  /** Resolves once so many more keys were completed and repeated; rejects if a call failed. */
  more(keys: number): Promise<void>;
  /** Lets each caller finish its key; rejects if a call failed. */
  stop(): Promise<void>;
}

/** Starts one caller per client. */
export function startRepeats(clients: readonly IdempotencyClient[], namespace: string): Repeats {
  let stopping = false;
  let done = 0;
  async function run(client: IdempotencyClient, index: number): Promise<void> {
    // Repeated through another client, which may be another server's.
    const other = clients[(index + 1) % clients.length] ?? client;
    while (!stopping) {
      const id = { namespace, key: randomUUID() };
      const { fencingToken } = granted(await client.claim(id));
      await client.complete({ ...id, fencingToken, result: success(id.key) });
      for (const repeater of [client, other]) {
        const { outcome } = await repeater.claim(id);
        expect(outcome).toMatchObject({ case: "completed", value: { result: { payload: bytes(id.key) } } });
      }
      done++;
    }
  }
  const callers = Promise.all(clients.map(run));
  // Told by `stop` and `more`.
  callers.catch(() => {});
  return {
    async more(keys) {
      const goal = done + keys;
      await Promise.race([expect.poll(() => done, PATIENCE).toBeGreaterThanOrEqual(goal), callers]);
    },
    async stop() {
      stopping = true;
      await callers;
    },
  };
}
