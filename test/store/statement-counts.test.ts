import { beforeAll, expect, test } from "vitest";
import { Result_Kind } from "../../clients/typescript/src/gen/onceward/v1/record_pb.ts";
import { connectClient, type IdempotencyClient } from "../helpers/calls/clients.ts";
import { connectCrowd } from "../helpers/calls/crowd.ts";
import { granted, grantsAmong } from "../helpers/calls/records.ts";
import { statementsDuring } from "../helpers/database/statements.ts";
import { createTenant, type TestTenant } from "../helpers/servers/tenants.ts";
import { useServer } from "../helpers/servers/use-server.ts";

const { database, server } = useServer();
let tenant: TestTenant;
let client: IdempotencyClient;

beforeAll(async () => {
  tenant = await createTenant(database);
  client = connectClient(server, tenant.apiKey);
  // The credential and the policy are in memory from here on.
  await client.lookup({ namespace: "charges", key: "connected" });
});

test("a lone claim, complete, lookup, extension and release cost one statement each, and a repeat two", async () => {
  const id = { namespace: "charges", key: "lone" };
  const result = { kind: Result_Kind.SUCCESS, payload: Buffer.from("paid") };
  let fencingToken = 0n;
  const claim = async () => {
    fencingToken = granted(await client.claim(id)).fencingToken;
  };
  expect(await statementsDuring(server, claim)).toEqual({ claim_record: 1 });
  const extend = () => client.extendLease({ ...id, fencingToken });
  expect(await statementsDuring(server, extend)).toEqual({ extend_leases: 1 });
  const release = () => client.release({ ...id, fencingToken });
  expect(await statementsDuring(server, release)).toEqual({ release_records: 1 });
  expect(await statementsDuring(server, claim)).toEqual({
    claim_record: 1,
    read_records: 1,
    take_over_records: 1,
  });
  const complete = () => client.complete({ ...id, fencingToken, result });
  expect(await statementsDuring(server, complete)).toEqual({ complete_records: 1 });
  const repeat = () => client.claim(id);
  expect(await statementsDuring(server, repeat)).toEqual({ claim_record: 1, read_records: 1 });
  expect(await statementsDuring(server, () => client.lookup(id))).toEqual({ read_records: 1 });
});

test("64 claims at once from a client that does not batch reach Postgres as a few statements", async () => {
  const work = () =>
    Promise.all(
      Array.from({ length: 64 }, (_, index) => client.claim({ namespace: "charges", key: `many-${index}` })),
    );
  const {
    claim_record: alone = 0,
    claim_records: together = 0,
    ...others
  } = await statementsDuring(server, work);
  expect(alone + together).toBeLessThanOrEqual(8);
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
  const statements = await statementsDuring(server, work);
  expect(grantsAmong(await Promise.all(claims))).toHaveLength(1);
  expect(Object.values(statements).reduce((sum, count) => sum + count)).toBeLessThanOrEqual(100);
});

test("a batch of a thousand claims costs four statements", async () => {
  const items = Array.from({ length: 1000 }, (_, index) => ({
    request: { case: "claim" as const, value: { namespace: "charges", key: `batch-${index}` } },
  }));
  expect(await statementsDuring(server, () => client.batch({ items }))).toEqual({ claim_records: 4 });
});

test("a request that is refused for its form costs no statement", async () => {
  const refused = () => client.claim({ namespace: "Not A Namespace", key: "" }).catch(() => {});
  expect(await statementsDuring(server, refused)).toEqual({});
});
