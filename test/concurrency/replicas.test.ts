import { afterAll, beforeAll, expect, test } from "vitest";
import { Record_State, Result_Kind } from "../../clients/typescript/src/gen/onceward/v1/record_pb.ts";
import { connectClient, type IdempotencyClient } from "../support/calls/clients.ts";
import { errorOf } from "../support/calls/errors.ts";
import { granted } from "../support/calls/records.ts";
import { useDatabase } from "../support/database/use-database.ts";
import { startTestServer, type TestServer } from "../support/servers/server.ts";
import { createTenant } from "../support/servers/tenants.ts";

const database = useDatabase();
let servers: TestServer[];
let one: IdempotencyClient;
let two: IdempotencyClient;

beforeAll(async () => {
  servers = await Promise.all([startTestServer(database.url), startTestServer(database.url)]);
  const { apiKey } = await createTenant(database);
  const clients = servers.map((server) => connectClient(server, apiKey));
  [one, two] = clients as [IdempotencyClient, IdempotencyClient];
});

afterAll(() => Promise.all(servers?.map((server) => server.stop()) ?? []));

test("a change by one replica is visible on another replica at once", async () => {
  for (let round = 0; round < 20; round++) {
    const id = { namespace: "charges", key: `seen-${round}` };
    const { fencingToken } = granted(await one.claim({ ...id, owner: "worker-1" }));
    expect((await two.claim(id)).outcome).toMatchObject({ case: "inProgress", value: { owner: "worker-1" } });
    const result = { kind: Result_Kind.SUCCESS, payload: Buffer.from(`paid ${round}`) };
    await one.complete({ ...id, fencingToken, result });
    const { outcome } = await two.claim(id);
    expect(outcome).toMatchObject({ case: "completed", value: { result: { kind: Result_Kind.SUCCESS } } });
    const { record } = await two.lookup(id);
    expect(record).toMatchObject({ state: Record_State.COMPLETED, fencingToken });
    expect(Buffer.from(record?.result?.payload ?? []).toString()).toBe(`paid ${round}`);
  }
});

test("a claim of one replica is completed, extended and released through another", async () => {
  const ids = ["complete", "extend", "release"].map((key) => ({ namespace: "charges", key: `other-${key}` }));
  const tokens = await Promise.all(ids.map(async (id) => granted(await one.claim(id)).fencingToken));
  const [completing, extending, releasing] = ids.map((id, index) => ({
    ...id,
    fencingToken: tokens[index] ?? 0n,
  })) as [Held, Held, Held];
  await two.complete({ ...completing, result: { kind: Result_Kind.FAILURE } });
  await two.extendLease({ ...extending, checkpoint: { name: "charged" } });
  await two.release(releasing);
  expect((await one.claim(completing)).outcome.case).toBe("completed");
  expect((await one.lookup(extending)).record?.checkpoint?.name).toBe("charged");
  expect(granted(await one.claim(releasing)).attempt).toBe(2);
  expect(await errorOf(two.complete({ ...releasing, result: { kind: Result_Kind.SUCCESS } }))).toMatchObject({
    reason: "CLAIM_SUPERSEDED",
  });
});

interface Held {
  readonly namespace: string;
  readonly key: string;
  readonly fencingToken: bigint;
}
