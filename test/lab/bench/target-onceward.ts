import { randomUUID } from "node:crypto";
import type { Calls } from "@onceward/client";
import { Result_Kind } from "@onceward/client/proto";
import type { BenchDatabase } from "./database.ts";
import { FINGERPRINT, LEASE, shareOf, type Target } from "./target.ts";

const OWNER = "bench/1";

/** Calls through `@onceward/client`, which gathers them into batches; keys are spread over the namespaces. */
export function oncewardTarget(
  calls: Calls,
  database: BenchDatabase,
  namespaces: readonly string[] = [`ns-${randomUUID()}`],
): Target<bigint> {
  const namespaceOf = (key: string) => namespaces[shareOf(key, namespaces.length)] ?? "";
  const ask = (key: string) =>
    calls.claim({
      namespace: namespaceOf(key),
      key,
      claimId: randomUUID(),
      owner: OWNER,
      lease: LEASE,
      fingerprint: FINGERPRINT,
    });
  return {
    name: "Onceward",
    async claim(key) {
      const { outcome } = await ask(key);
      return outcome.case === "claimed" ? outcome.value.fencingToken : undefined;
    },
    async complete(key, fencingToken, payload) {
      const result = { kind: Result_Kind.SUCCESS, payload: new Uint8Array(payload), contentType: JSON_TYPE };
      await calls.complete({ namespace: namespaceOf(key), key, fencingToken, result });
    },
    async replay(key) {
      const { outcome } = await ask(key);
      return outcome.case === "completed" ? outcome.value.result?.payload : undefined;
    },
    countKeys: () => countRecords(database, namespaces),
  };
}

/** The media type of results. */
export const JSON_TYPE = "application/json";

/** Counts the records of namespaces. */
export async function countRecords(database: BenchDatabase, namespaces: readonly string[]): Promise<number> {
  const [row] = await database.query<{ count: number }>(
    "select count(*)::int as count from records where namespace = any ($1)",
    [namespaces],
  );
  return row?.count ?? 0;
}
