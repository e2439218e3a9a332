import { randomUUID } from "node:crypto";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { createOnceward } from "@onceward/client";
import { IdempotencyService, Result_Kind } from "@onceward/client/proto";

/**
 * The program of TypeScript for P22: measures operations a second of the client beside a bare stub. An operation is a Claim
 * and a Complete of a fresh key. Prints one line of JSON for each figure.
 */
const WARM_UP_MS = 1000;

const {
  ONCEWARD_ADDRESS: authority = "",
  ONCEWARD_API_KEY: apiKey = "",
  ONCEWARD_NAMESPACE: namespace = "",
  BENCH_CALLERS: callers = "",
  BENCH_SECONDS: seconds = "",
} = process.env;
const address = `http://${authority}`;
const prefix = randomUUID();
let keys = 0;

function freshKey(): string {
  return `${prefix}${++keys}`;
}

/** Returns the operations a second of this many callers. */
async function measure(callers: number, operate: () => Promise<unknown>): Promise<number> {
  const beginsAtMs = performance.now() + WARM_UP_MS;
  const endsAtMs = beginsAtMs + Number(seconds) * 1000;
  let count = 0;
  const work = async () => {
    for (;;) {
      await operate();
      const nowMs = performance.now();
      if (nowMs >= endsAtMs) return;
      if (nowMs >= beginsAtMs) count++;
    }
  };
  await Promise.all(Array.from({ length: callers }, work));
  return count / Number(seconds);
}

function report(client: string, callers: number, operationsPerSecond: number): void {
  console.log(JSON.stringify({ language: "typescript", client, callers, operationsPerSecond }));
}

const transport = createGrpcTransport({ baseUrl: address });
const stub = createClient(IdempotencyService, transport);
const headers = { authorization: `Bearer ${apiKey}` };
const result = {
  kind: Result_Kind.SUCCESS,
  payload: new TextEncoder().encode("null"),
  contentType: "application/json",
};

async function operateBare(): Promise<void> {
  const key = freshKey();
  const { outcome } = await stub.claim({ namespace, key, claimId: key, owner: "bench" }, { headers });
  if (outcome.case !== "claimed") throw new Error(`a fresh key was answered ${outcome.case}`);
  await stub.complete({ namespace, key, fencingToken: outcome.value.fencingToken, result }, { headers });
}

for (const count of callers.split(",").map(Number)) {
  report("stub", count, await measure(count, operateBare));
  const client = createOnceward({ address, apiKey });
  report(
    "onceward",
    count,
    await measure(count, () => client.run({ namespace, key: freshKey() }, () => null)),
  );
  await client.close();
}
process.exit();
