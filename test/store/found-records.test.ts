import { expect, test } from "vitest";
import { Result_Kind } from "../../clients/typescript/src/gen/onceward/v1/record_pb.ts";
import { findResolved } from "../../server/src/records/claim/find-resolved.ts";
import { endLeases, granted } from "../support/calls/records.ts";
import { lockRows, openConnection, openStorePool } from "../support/database/connections.ts";
import { useCaller, useServer } from "../support/servers/use-server.ts";

const { database, server } = useServer();
const { tenant, client } = useCaller({ database, server });

function idOf(key: string) {
  return { namespace: "charges", key };
}

/** Returns the system columns of these keys' rows, which change with every lock and every write. */
async function versionsOf(keys: readonly string[]) {
  return database.query(
    "select key, ctid::text, xmin::text, xmax::text from records where tenant_id = $1 and key = any ($2) order by key",
    [tenant.id, keys],
  );
}

async function claimTogether(keys: readonly string[]): Promise<unknown[]> {
  const items = keys.map((key) => ({ request: { case: "claim" as const, value: idOf(key) } }));
  const { items: answers } = await client.batch({ items });
  return answers.map(({ response }) =>
    response.case === "claim" ? response.value.outcome.case : response.case,
  );
}

test("a claim that finds a record does not change its row, in a single claim and in a batch", async () => {
  const keys = ["held", "completed"];
  granted(await client.claim(idOf("held")));
  const { fencingToken } = granted(await client.claim(idOf("completed")));
  await client.complete({ ...idOf("completed"), fencingToken, result: { kind: Result_Kind.SUCCESS } });
  const before = await versionsOf(keys);
  expect((await client.claim(idOf("held"))).outcome.case).toBe("inProgress");
  expect((await client.claim(idOf("completed"))).outcome.case).toBe("completed");
  expect(await claimTogether([...keys, "new"])).toEqual(["inProgress", "completed", "claimed"]);
  expect(await versionsOf(keys)).toEqual(before);
});

test("a claim that finds a record does not wait for a transaction that has locked its row", async () => {
  granted(await client.claim(idOf("locked")));
  const other = await openConnection(database);
  await lockRows(other, tenant, ["locked"]);
  expect((await client.claim(idOf("locked"))).outcome.case).toBe("inProgress");
  expect(await claimTogether(["beside", "locked"])).toEqual(["claimed", "inProgress"]);
  await other.query("rollback");
});

/** What happens to a key after it was claimed. */
const FATES: Readonly<Record<string, (key: string, fencingToken: bigint) => Promise<unknown>>> = {
  running: async () => {},
  settled: (key, fencingToken) =>
    client.complete({ ...idOf(key), fencingToken, result: { kind: Result_Kind.SUCCESS } }),
  released: (key, fencingToken) => client.release({ ...idOf(key), fencingToken }),
  lapsed: (key) => endLeases(database, tenant, key),
  ended: (key) => database.query("update records set expires_at = now() where key = $1", [key]),
  forgotten: (key) => database.query("update records set state = 0 where key = $1", [key]),
  removed: (key) => database.query("delete from records where key = $1", [key]),
  runningToo: async () => {},
};

test("all keys are found resolved, except those that are in progress under a running lease", async () => {
  for (const [key, befall] of Object.entries(FATES)) {
    await befall(key, granted(await client.claim(idOf(key))).fencingToken);
  }
  const keys = Object.keys(FATES);
  const ids = keys.map((key) => ({ tenantId: tenant.id, ...idOf(key) }));
  const resolved = await findResolved({ pool: openStorePool(database) }, ids);
  expect(keys.filter((_, index) => !resolved.has(index))).toEqual(["running", "runningToo"]);
});
