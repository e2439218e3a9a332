import { randomUUID } from "node:crypto";
import { beforeAll, expect, test } from "vitest";
import type { IdempotencyClient } from "../support/calls/clients.ts";
import { connectCrowd } from "../support/calls/crowd.ts";
import { endLeases, granted, grantsAmong } from "../support/calls/records.ts";
import { useDatabase } from "../support/database/use-database.ts";
import { createTenant } from "../support/servers/tenants.ts";
import { useServerOn } from "../support/servers/use-server.ts";
import { useStarted } from "../support/use-started.ts";

const CROWD = 100;
const ROUNDS = 5;

const database = useDatabase();
const servers = [useServerOn(database), useServerOn(database)];
const tenant = useStarted(() => createTenant(database));
let crowd: IdempotencyClient[];

beforeAll(async () => {
  crowd = await connectCrowd(servers, tenant.apiKey, CROWD);
});

/** All clients claim one key at once, each with another claim id. */
function allClaim(key: string) {
  return Promise.all(
    crowd.map((client, index) =>
      client.claim({ namespace: "charges", key, owner: `worker-${index}`, claimId: randomUUID() }),
    ),
  );
}

test("of 100 connections that claim one key at once, one is granted, and the others see it", async () => {
  for (let round = 0; round < ROUNDS; round++) {
    const replies = await allClaim(`fresh-${round}`);
    expect(grantsAmong(replies)).toHaveLength(1);
    const winner = replies.findIndex(({ outcome }) => outcome.case === "claimed");
    const owners = replies.flatMap(({ outcome }) =>
      outcome.case === "inProgress" ? [outcome.value.owner] : [],
    );
    expect(owners).toEqual(Array(CROWD - 1).fill(`worker-${winner}`));
  }
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
