import { expect, test } from "vitest";
import { connectClient } from "../support/calls/clients.ts";
import { errorOf } from "../support/calls/errors.ts";
import { granted } from "../support/calls/records.ts";
import { grant, ORDER, seconds, success } from "../support/calls/verbs.ts";
import { createDatabaseOfTest } from "../support/database/database.ts";
import { readMetrics } from "../support/servers/metrics.ts";
import { createTenant } from "../support/servers/tenants.ts";
import { startServerOfTest } from "../support/servers/use-server.ts";
import { untilWaiting } from "../support/servers/waiters.ts";

const PATIENCE = { timeout: 30_000, interval: 20 };
const OTHER = { ...ORDER, key: "order-2" };

test("waiting claims are kept while polls fail repeatedly, and are woken once one succeeds", async () => {
  const database = await createDatabaseOfTest();
  const server = await startServerOfTest(database.url, {}, { waiterTickMs: 20 });
  const client = connectClient(server, (await createTenant(database)).apiKey);
  await grant(client, { lease: seconds(600) });
  await grant(client, { ...OTHER, lease: seconds(600) });
  const waiting = [1, 2].map(() => client.claim({ ...ORDER, wait: seconds(60) }));
  const leaving = new AbortController();
  const left = errorOf(client.claim({ ...OTHER, wait: seconds(60) }, { signal: leaving.signal }));
  await untilWaiting(server, 3);
  await database.query("alter table records rename to records_away");
  const failed = async () =>
    (await readMetrics(server)).get('onceward_store_errors_total{statement="find_resolved_records"}') ?? 0;
  await expect.poll(failed, PATIENCE).toBeGreaterThan(20);
  leaving.abort();
  await left;
  await untilWaiting(server, 2);
  // Like a change by another replica: only a poll finds it.
  await database.query("update records_away set lease_expires_at = now() where key = $1", [ORDER.key]);
  await database.query("alter table records_away rename to records");
  const { fencingToken } = granted(await Promise.race(waiting));
  await untilWaiting(server, 1);
  await client.complete({ ...ORDER, fencingToken, result: success("paid") });
  const outcomes = (await Promise.all(waiting)).map(({ outcome }) => outcome.case);
  expect(outcomes.sort()).toEqual(["claimed", "completed"]);
  await untilWaiting(server, 0);
}, 60_000);
