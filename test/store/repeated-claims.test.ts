import { expect, test } from "vitest";
import { Result_Kind } from "../../clients/typescript/src/gen/onceward/v1/record_pb.ts";
import { granted } from "../support/calls/records.ts";
import { lockRows, openConnection } from "../support/database/connections.ts";
import { useCaller, useServer } from "../support/servers/use-server.ts";

const { database, server } = useServer({ ONCEWARD_CACHE_MIB: "0" });
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
