import { expect, test } from "vitest";
import { raiseTokenFloor } from "../../server/src/database/installation.ts";
import { connectClient } from "../support/calls/clients.ts";
import { granted } from "../support/calls/records.ts";
import { seconds, success } from "../support/calls/verbs.ts";
import { openStorePool } from "../support/database/connections.ts";
import { createDatabaseOfTest } from "../support/database/database.ts";
import { runWithInput } from "../support/processes/command.ts";
import { settingsFor } from "../support/processes/serve.ts";
import { createTenant } from "../support/servers/tenants.ts";
import { startServerOfTest } from "../support/servers/use-server.ts";

/** Enough for each shard to have some. */
const KEYS = Array.from({ length: 40 }, (_, n) => `order-${n}`);
const id = (key: string) => ({ namespace: "charges", key });

/** An installation on a Citus of its own. */
async function startHome() {
  const database = await createDatabaseOfTest();
  const server = await startServerOfTest(database.url);
  return { database, server, settings: settingsFor(database.url) };
}

test("a tenant moves from one Citus to another: results are replayed, and tokens rise at once", async () => {
  const [from, to] = [await startHome(), await startHome()];
  // The old home's clock was ahead by an hour once.
  await raiseTokenFloor(openStorePool(from.database), (Date.now() + 3_600_000) * 1000);
  const tenant = await createTenant(from.database);
  const [old, next] = [connectClient(from.server, tenant.apiKey), connectClient(to.server, tenant.apiKey)];
  for (const key of KEYS) {
    const { fencingToken } = granted(await old.claim(id(key)));
    await old.complete({ ...id(key), fencingToken, result: success(key) });
  }
  // The move may last for longer than a default lease.
  granted(await old.claim({ ...id("held"), lease: seconds(600) }));
  const swept = granted(await old.claim(id("swept")));
  await from.database.query("delete from records where key = 'swept'");

  // The replica at the new home gives out tokens all the time.
  const neighbour = connectClient(to.server, (await createTenant(to.database)).apiKey);
  let isMoving = true;
  const claimAlways = async () => {
    for (let n = 0; isMoving; n++) await neighbour.claim(id(`neighbour-${n}`));
  };
  const busy = claimAlways();
  await from.database.query("update tenants set moving_since = now() - interval '1 minute'");
  const exported = await runWithInput("", ["export-tenant", "--tenant", tenant.name], from.settings);
  expect(exported).toMatchObject({ exit: 0 });
  expect(await runWithInput(exported.stdout, ["import-tenant"], to.settings)).toEqual({
    exit: 0,
    stdout: `Tenant ${tenant.name} is served here, with ${KEYS.length + 1} records.\n`,
    stderr: "",
  });
  const { fencingToken } = granted(await next.claim(id("swept")));
  isMoving = false;
  await busy;
  expect(fencingToken).toBeGreaterThan(swept.fencingToken);
  for (const key of KEYS) {
    expect((await next.claim(id(key))).outcome).toMatchObject({ value: { result: success(key) } });
  }
  expect((await next.claim(id("held"))).outcome.case).toBe("inProgress");
});
