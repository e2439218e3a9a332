import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { IdempotencyClient } from "../support/calls/clients.ts";
import { connectCrowd } from "../support/calls/crowd.ts";
import { endLeases, granted, grantsAmong } from "../support/calls/records.ts";
import { useDatabase } from "../support/database/use-database.ts";
import { startTestServer, type TestServer } from "../support/servers/server.ts";
import { createTenant, type TestTenant } from "../support/servers/tenants.ts";

const CROWD = 100;
const ROUNDS = 5;

const database = useDatabase();
let servers: TestServer[];
let tenant: TestTenant;
let crowd: IdempotencyClient[];

beforeAll(async () => {
  servers = await Promise.all([startTestServer(database.url), startTestServer(database.url)]);
  tenant = await createTenant(database);
  crowd = await connectCrowd(servers, tenant.apiKey, CROWD);
});

afterAll(() => Promise.all(servers?.map((server) => server.stop()) ?? []));

/** All clients claim one key at once, each with another claim id. */
function allClaim(key: string, clients = crowd) {
  return Promise.all(
    clients.map((client, index) =>
      client.claim({ namespace: "charges", key, owner: `worker-${index}`, claimId: randomUUID() }),
    ),
  );
}

test("of 100 connections to two servers that claim one key at once, exactly one is granted", async () => {
  for (let round = 0; round < ROUNDS; round++) {
    const replies = await allClaim(`fresh-${round}`);
    expect(grantsAmong(replies)).toHaveLength(1);
    expect(replies.filter(({ outcome }) => outcome.case === "inProgress")).toHaveLength(CROWD - 1);
  }
});

test("of 100 connections to one server that claim one key at once, exactly one is granted", async () => {
  const toOneServer = crowd.filter((_, index) => index % 2 === 0);
  for (let round = 0; round < ROUNDS; round++) {
    expect(grantsAmong(await allClaim(`one-server-${round}`, toOneServer))).toHaveLength(1);
  }
});

test("every client that was not granted the key is told its holder", async () => {
  const replies = await allClaim("told");
  const winner = replies.findIndex(({ outcome }) => outcome.case === "claimed");
  const owners = replies.flatMap(({ outcome }) =>
    outcome.case === "inProgress" ? [outcome.value.owner] : [],
  );
  expect(new Set(owners)).toEqual(new Set([`worker-${winner}`]));
});

test("of many clients that take over an expired lease, one is granted, with a higher token", async () => {
  for (let round = 0; round < ROUNDS; round++) {
    const key = `lapsed-${round}`;
    const [first] = grantsAmong(await allClaim(key));
    await endLeases(database, tenant, key);
    const grants = grantsAmong(await allClaim(key));
    expect(grants).toMatchObject([{ attempt: 2 }]);
    expect(grants[0]?.fencingToken).toBeGreaterThan(first?.fencingToken ?? 0n);
  }
});

test("of many clients that claim a released key, one is granted, with a higher token", async () => {
  const [client] = crowd as [IdempotencyClient];
  for (let round = 0; round < ROUNDS; round++) {
    const id = { namespace: "charges", key: `released-${round}` };
    const { fencingToken } = granted(await client.claim(id));
    await client.release({ ...id, fencingToken });
    const grants = grantsAmong(await allClaim(id.key));
    expect(grants).toMatchObject([{ attempt: 2 }]);
    expect(grants[0]?.fencingToken).toBeGreaterThan(fencingToken);
  }
});

test("of many clients that claim an expired key, one is granted, as a first attempt", async () => {
  const id = { namespace: "charges", key: "forgotten" };
  const [client] = crowd as [IdempotencyClient];
  const { fencingToken } = granted(await client.claim(id));
  await database.query("update records set expires_at = now() where tenant_id = $1 and key = $2", [
    tenant.id,
    id.key,
  ]);
  const grants = grantsAmong(await allClaim(id.key));
  expect(grants).toMatchObject([{ attempt: 1 }]);
  expect(grants[0]?.fencingToken).toBeGreaterThan(fencingToken);
});
