import { afterEach, beforeAll, expect, test } from "vitest";
import { Result_Kind } from "../../clients/typescript/src/gen/onceward/v1/record_pb.ts";
import type { IdempotencyClient } from "../support/calls/clients.ts";
import { connectCrowd } from "../support/calls/crowd.ts";
import { granted, grantsAmong } from "../support/calls/records.ts";
import { keysOfOneShard } from "../support/database/shards.ts";
import { statementsDuring } from "../support/database/statements.ts";
import { useCaller, useServer } from "../support/servers/use-server.ts";

const { database, server } = useServer();
const { tenant, client } = useCaller({ database, server });
let cachedAtMs: number;
let refreshes = 0;

beforeAll(async () => {
  // From here on the credential and the policy are cached.
  cachedAtMs = performance.now();
  await client.lookup({ namespace: "charges", key: "connected" });
});

/** While they are used, a credential and its tenant are each refreshed at most this often. */
const REFRESH_MS = 4000;

/** Counts the statements that a server runs during work, without refreshes of the cached credential. */
async function statementsOf(work: () => Promise<unknown>): Promise<Readonly<Record<string, number>>> {
  const { read_api_keys = 0, read_tenants = 0, ...statements } = await statementsDuring(server, work);
  refreshes += read_api_keys + read_tenants;
  return statements;
}

afterEach(() => {
  expect(refreshes).toBeLessThanOrEqual((2 * (performance.now() - cachedAtMs)) / REFRESH_MS);
});

test("a single claim, complete, lookup, extension or release costs one statement, a repeat two", async () => {
  const id = { namespace: "charges", key: "single" };
  const result = { kind: Result_Kind.SUCCESS, payload: Buffer.from("paid") };
  let fencingToken = 0n;
  const claim = async () => {
    fencingToken = granted(await client.claim(id)).fencingToken;
  };
  expect(await statementsOf(claim)).toEqual({ claim_record: 1 });
  const extend = () => client.extendLease({ ...id, fencingToken });
  expect(await statementsOf(extend)).toEqual({ extend_leases: 1 });
  const release = () => client.release({ ...id, fencingToken });
  expect(await statementsOf(release)).toEqual({ release_records: 1 });
  expect(await statementsOf(claim)).toEqual({
    claim_record: 1,
    read_records: 1,
    take_over_records: 1,
  });
  const complete = () => client.complete({ ...id, fencingToken, result });
  expect(await statementsOf(complete)).toEqual({ complete_records: 1 });
  const repeat = () => client.claim(id);
  expect(await statementsOf(repeat)).toEqual({ claim_record: 1, read_records: 1 });
  expect(await statementsOf(() => client.lookup(id))).toEqual({ read_records: 1 });
});

test("where most claims find a record, such a claim costs one statement, another one two", async () => {
  const idOf = (key: string) => ({ namespace: "repeated", key });
  const claimTogether = (keys: readonly string[]) => {
    const items = keys.map((key) => ({ request: { case: "claim" as const, value: idOf(key) } }));
    return client.batch({ items });
  };
  const { fencingToken } = granted(await client.claim(idOf("first")));
  await claimTogether(Array.from({ length: 200 }, () => "first"));
  const claim = (key: string) => () => client.claim(idOf(key));
  expect(await statementsOf(claim("first"))).toEqual({ read_records: 1 });
  expect(await statementsOf(claim("second"))).toEqual({ read_records: 1, claim_record: 1 });
  await client.release({ ...idOf("first"), fencingToken });
  expect(await statementsOf(claim("first"))).toEqual({ read_records: 1, take_over_records: 1 });
  const { items } = await claimTogether(["third", "first", "third", "other"]);
  expect(items.map(({ response }) => response.case === "claim" && response.value.outcome.case)).toEqual([
    "claimed",
    "inProgress",
    "inProgress",
    "claimed",
  ]);
  await claimTogether(Array.from({ length: 100 }, (_, index) => `new-${index}`));
  expect(await statementsOf(claim("fourth"))).toEqual({ claim_record: 1 });
});

test("64 claims at once from a client that does not batch cost a few statements", async () => {
  const work = () =>
    Promise.all(
      Array.from({ length: 64 }, (_, index) => client.claim({ namespace: "charges", key: `many-${index}` })),
    );
  const { claim_record: single = 0, claim_records: batched = 0, ...others } = await statementsOf(work);
  expect(single + batched).toBeLessThanOrEqual(8);
  expect(others).toEqual({});
});

test("a thousand claims of one key at once cost a few statements, and one is granted", async () => {
  const crowd = await connectCrowd([server], tenant.apiKey, 20);
  const claims: ReturnType<IdempotencyClient["claim"]>[] = [];
  const work = async () => {
    for (let i = 0; i < 50; i++) {
      for (const each of crowd) claims.push(each.claim({ namespace: "charges", key: "wanted" }));
    }
    await Promise.all(claims);
  };
  const statements = await statementsOf(work);
  expect(grantsAmong(await Promise.all(claims))).toHaveLength(1);
  expect(Object.values(statements).reduce((sum, count) => sum + count)).toBeLessThanOrEqual(100);
});

test("a batch of a thousand claims costs four statements", async () => {
  const items = (await keysOfOneShard(database, 1000)).map((key) => ({
    request: { case: "claim" as const, value: { namespace: "batches", key } },
  }));
  expect(await statementsOf(() => client.batch({ items }))).toEqual({ claim_records: 4 });
});
