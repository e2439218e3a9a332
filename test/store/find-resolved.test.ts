import { expect, test } from "vitest";
import { Result_Kind } from "../../clients/typescript/src/gen/onceward/v1/record_pb.ts";
import { findResolved } from "../../server/src/records/claim/find-resolved.ts";
import { endLeases, granted } from "../support/calls/records.ts";
import { openStorePool } from "../support/database/connections.ts";
import { useCaller, useServer } from "../support/servers/use-server.ts";

const { database, server } = useServer();
const { tenant, client } = useCaller({ database, server });

function idOf(key: string) {
  return { namespace: "charges", key };
}

/** What happens to a key after it was claimed. */
const FATES: Readonly<Record<string, (key: string, fencingToken: bigint) => Promise<unknown>>> = {
  held: async () => {},
  completed: (key, fencingToken) =>
    client.complete({ ...idOf(key), fencingToken, result: { kind: Result_Kind.SUCCESS } }),
  released: (key, fencingToken) => client.release({ ...idOf(key), fencingToken }),
  lapsed: (key) => endLeases(database, tenant, key),
  ended: (key) => database.query("update records set expires_at = now() where key = $1", [key]),
  forgotten: (key) => database.query("update records set state = 0 where key = $1", [key]),
  removed: (key) => database.query("delete from records where key = $1", [key]),
  heldToo: async () => {},
};

test("all keys are found resolved, except those that are in progress under a running lease", async () => {
  for (const [key, befall] of Object.entries(FATES)) {
    await befall(key, granted(await client.claim(idOf(key))).fencingToken);
  }
  const keys = Object.keys(FATES);
  const ids = keys.map((key) => ({ tenantId: tenant.id, ...idOf(key) }));
  const resolved = await findResolved({ pool: openStorePool(database) }, ids);
  expect(keys.filter((_, index) => !resolved.has(index))).toEqual(["held", "heldToo"]);
});
