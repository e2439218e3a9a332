import { randomUUID } from "node:crypto";
import { setTimeout as rest } from "node:timers/promises";
import { expect } from "vitest";
import type { ClaimResponse } from "../../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import type { Addresses } from "../../../server/src/replica/server.ts";
import type { IdempotencyClient } from "../calls/clients.ts";
import { granted } from "../calls/records.ts";
import { bytes, ORDER, success } from "../calls/verbs.ts";
import type { TestRedis } from "../redis/redis.ts";
import { readMetrics } from "./metrics.ts";

/** More repeats than a server needs to treat a namespace as one with frequent repeats. */
const REPEATS = 15;
const PATIENCE = { timeout: 30_000, interval: 10 };

/**
 * Repeats a claim so often that the server treats repeats as frequent in its namespace, and asks Redis there.
 */
export async function repeatOften(client: IdempotencyClient, { namespace } = ORDER): Promise<void> {
  const id = { namespace, key: `repeated-${randomUUID()}` };
  const { fencingToken } = granted(await client.claim(id));
  await client.complete({ ...id, fencingToken, result: success("repeated") });
  for (let repeat = 0; repeat < REPEATS; repeat++) await client.claim(id);
}

/** Returns how many lookups in a cache layer had a result so far, from the server's metrics. */
export async function countLooks(server: Addresses, layer: string, result: string): Promise<number> {
  const metrics = await readMetrics(server);
  return metrics.get(`onceward_cache_requests_total{layer="${layer}",result="${result}"}`) ?? 0;
}

/** Repeats a claim until it is answered from Redis, and returns that response. */
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

/** Resolves once the service bypasses Redis, or uses it again. */
export async function untilBypassed(server: Addresses, is: boolean): Promise<void> {
  const name = 'onceward_degraded{reason="redis_bypassed"}';
  await expect.poll(async () => (await readMetrics(server)).get(name), PATIENCE).toBe(is ? 1 : 0);
}

/** Waits until Redis has `count` copies of a key, and returns their names. */
export async function copiesOf(redis: TestRedis, key: string, count: number): Promise<string[]> {
  const find = async () => ((await redis.command("keys", `onceward:*${key}`)) as Buffer[]).map(String);
  await expect.poll(find, PATIENCE).toHaveLength(count);
  return find();
}

/** Callers that claim, complete and repeat keys until a call fails or has a wrong answer. */
export interface Repeats {
  /** Resolves once so many more keys have been completed and repeated; rejects if a call failed. */
  more(keys: number): Promise<void>;
  /** Lets each caller finish its key; rejects if a call failed. */
  stop(): Promise<void>;
}

/** Keys that the callers do at full speed after those that the test waits for; then each rests between two keys. */
const KEYS_AHEAD = 50;
const REST_MS = 20;

/** Starts one caller per client. While a test waits for something else, they leave the processor to what it waits for. */
export function startRepeats(clients: readonly IdempotencyClient[], namespace: string): Repeats {
  let stopping = false;
  let done = 0;
  let goal = 0;
  async function run(client: IdempotencyClient, index: number): Promise<void> {
    // The repeat uses another client, which may belong to another server.
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
      if (done > goal + KEYS_AHEAD) await rest(REST_MS);
    }
  }
  const callers = Promise.all(clients.map(run));
  // `stop` and `more` rethrow it.
  callers.catch(() => {});
  return {
    async more(keys) {
      goal = done + keys;
      await Promise.race([expect.poll(() => done, PATIENCE).toBeGreaterThanOrEqual(goal), callers]);
    },
    async stop() {
      stopping = true;
      await callers;
    },
  };
}
