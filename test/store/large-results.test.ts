import { afterAll, beforeAll, expect, test } from "vitest";
import type { ClaimResponse } from "../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import { Result_Kind } from "../../clients/typescript/src/gen/onceward/v1/record_pb.ts";
import { connectClient, type IdempotencyClient } from "../support/calls/clients.ts";
import { granted } from "../support/calls/records.ts";
import { useDatabase } from "../support/database/use-database.ts";
import { randomFor } from "../support/seed.ts";
import { type ServerProcess, startServerProcess } from "../support/servers/server-process.ts";
import { createTenant } from "../support/servers/tenants.ts";

const MIB = 1024 * 1024;
const KEYS = 120;
const FEW_KEYS = 40;
/** An idle server uses about 130 MB. All payloads at once, as text and as bytes, would use 480 MB more. */
const MAX_RSS_MB = 450;

const database = useDatabase();
let server: ServerProcess;
let client: IdempotencyClient;
const payload = randomFor("large results").bytes(MIB);

beforeAll(async () => {
  server = await startServerProcess(database.url, { ONCEWARD_CACHE_MIB: "0" });
  const { apiKey } = await createTenant(database, { max_result_bytes: MIB });
  client = connectClient(server, apiKey);
});

afterAll(() => server?.end());

function idOf(index: number) {
  return { namespace: "reports", key: `report-${index}` };
}

/** Returns the payload of report `index`. The first bytes of each are different. */
function payloadOf(index: number): Buffer {
  const copy = Buffer.from(payload);
  if (index > 0) copy.write(idOf(index).key);
  return copy;
}

/** Returns whether a claim's answer contains the payload of report `index`, byte for byte. */
function replays(index: number, { outcome }: ClaimResponse): boolean {
  if (outcome.case !== "completed") throw new Error(`the claim was answered ${outcome.case}`);
  return payloadOf(index).equals(outcome.value.result?.payload ?? new Uint8Array());
}

/** Copies the record of `report-0`, each copy with another payload. */
async function copyReport(copies: number): Promise<void> {
  const others = `tenant_id, namespace, fencing_token, attempt, holds_on_lease_expiry, accepts_ambiguous, lease_ms,
    key_retention_s, result_retention_s, failure_retention_s, first_claimed_at, claimed_at, sweep_at, claim_id, owner,
    lease_expires_at, expires_at, state, settled_at, result_expires_at, result_kind, result_digest`;
  await database.query(
    `insert into records (${others}, key, result_payload)
     select ${others}, 'report-' || n, overlay(result_payload placing convert_to('report-' || n, 'utf8') from 1)
       from records, generate_series(1, $1::int) n
      where key = 'report-0'`,
    [copies],
  );
}

/** Returns the server's maximum memory during work, in megabytes. */
async function peakDuring(work: () => Promise<unknown>): Promise<number> {
  let peakMb = 0;
  const watch = setInterval(async () => {
    peakMb = Math.max(peakMb, await server.rssMb());
  }, 10);
  try {
    await work();
  } finally {
    clearInterval(watch);
  }
  return peakMb;
}

test("a result of 1 MiB is replayed byte for byte", async () => {
  const id = idOf(0);
  const { fencingToken } = granted(await client.claim(id));
  const result = { kind: Result_Kind.SUCCESS, payload };
  await client.complete({ ...id, fencingToken, result });
  expect(replays(0, await client.claim(id))).toBe(true);
  expect((await client.lookup(id)).record?.result?.payload.byteLength).toBe(MIB);
  expect(await client.complete({ ...id, fencingToken, result })).toMatchObject({ alreadyCompleted: true });
});

test("120 results of 1 MiB requested at once are replayed, with few in memory at a time", async () => {
  await copyReport(KEYS - 1);
  const peakMb = await peakDuring(async () => {
    const claims = Array.from({ length: KEYS }, async (_, index) =>
      replays(index, await client.claim(idOf(index))),
    );
    expect(new Set(await Promise.all(claims))).toEqual(new Set([true]));
  });
  expect(peakMb).toBeLessThan(MAX_RSS_MB);
}, 60_000);

test("small results do not wait for large ones that are requested at the same time", async () => {
  const small = { namespace: "reports", key: "small" };
  const { fencingToken } = granted(await client.claim(small));
  await client.complete({ ...small, fencingToken, result: { kind: Result_Kind.SUCCESS } });
  let largeDone = 0;
  const large = Array.from({ length: FEW_KEYS }, async (_, index) => {
    await client.claim(idOf(index));
    largeDone++;
  });
  expect((await client.claim(small)).outcome.case).toBe("completed");
  expect(largeDone).toBeLessThan(FEW_KEYS);
  await Promise.all(large);
}, 60_000);
