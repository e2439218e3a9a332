import { beforeAll, expect, test } from "vitest";
import type { BatchResponse } from "../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import { Result_Kind } from "../../clients/typescript/src/gen/onceward/v1/record_pb.ts";
import type { IdempotencyClient } from "../support/calls/clients.ts";
import { connectCrowd } from "../support/calls/crowd.ts";
import { useDatabase } from "../support/database/use-database.ts";
import { readMetrics } from "../support/servers/metrics.ts";
import type { TestServer } from "../support/servers/server.ts";
import { createTenant } from "../support/servers/tenants.ts";
import { useServerOn } from "../support/servers/use-server.ts";

const ROUNDS = 10;
const KEYS = 200;

const database = useDatabase();
const servers = [useServerOn(database), useServerOn(database)];
let forwards: IdempotencyClient;
let backwards: IdempotencyClient;

beforeAll(async () => {
  const { apiKey } = await createTenant(database);
  const crowd = await connectCrowd(servers, apiKey, 2);
  [forwards, backwards] = crowd as [IdempotencyClient, IdempotencyClient];
});

/** Returns the tokens that a batch of claims was granted, by key. Expects that no item failed. */
function tokensOf(keys: readonly string[], { items }: BatchResponse): Map<string, bigint> {
  const tokens = new Map<string, bigint>();
  items.forEach(({ response }, index) => {
    if (response.case !== "claim") throw new Error(`an item was answered ${JSON.stringify(response)}`);
    const { outcome } = response.value;
    if (outcome.case === "claimed") tokens.set(keys[index] ?? "", outcome.value.fencingToken);
  });
  return tokens;
}

function claims(keys: readonly string[]) {
  return { items: keys.map((key) => ({ request: claimOf(key) })) };
}

function claimOf(key: string) {
  return { case: "claim" as const, value: { namespace: "charges", key } };
}

function settlement(tokens: ReadonlyMap<string, bigint>, round: number) {
  const result = { kind: Result_Kind.SUCCESS, payload: Buffer.from("done") };
  return {
    items: [...tokens].map(([key, fencingToken]) => {
      const id = { namespace: "charges", key, fencingToken };
      if (round % 2 === 0) return { request: { case: "release" as const, value: id } };
      return { request: { case: "complete" as const, value: { ...id, result } } };
    }),
  };
}

test("batches of the same keys in opposite order, on two servers, cause no deadlock", async () => {
  for (let round = 0; round < ROUNDS; round++) {
    const keys = Array.from({ length: KEYS }, (_, index) => `${round >> 1}-${index}`);
    const opposite = keys.toReversed();
    const [one, two] = await Promise.all([forwards.batch(claims(keys)), backwards.batch(claims(opposite))]);
    const granted = new Map([...tokensOf(keys, one), ...tokensOf(opposite, two)]);
    expect(granted.size).toBe(KEYS);
    const reversed = new Map([...granted].toReversed());
    const settled = await Promise.all([
      forwards.batch(settlement(granted, round)),
      backwards.batch(settlement(reversed, round)),
    ]);
    expect(settled.flatMap(({ items }) => items).filter(({ response }) => response.case === "error")).toEqual(
      [],
    );
  }
  // A deadlock ends by the lock timeout or by Postgres' detection, and counts as a failed statement.
  expect(await Promise.all(servers.map(countFailedStatements))).toEqual([0, 0]);
}, 60_000);

async function countFailedStatements(server: TestServer): Promise<number> {
  let count = 0;
  for (const [name, value] of await readMetrics(server)) {
    if (name.startsWith("onceward_store_errors_total")) count += value;
  }
  return count;
}
