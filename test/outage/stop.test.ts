import { expect, test } from "vitest";
import { connectClient } from "../support/calls/clients.ts";
import { grant } from "../support/calls/verbs.ts";
import { proxyDatabase } from "../support/database/database-proxy.ts";
import { useDatabase } from "../support/database/use-database.ts";
import { startTestServer } from "../support/servers/server.ts";
import { createTenant } from "../support/servers/tenants.ts";

/** Far less than any statement's own limit, so that a statement that fails by its limit shows in the log. */
const STORE_MS = 500;

const database = useDatabase();

test("a server whose database does not answer gives up what it stores at one time, and stops", async () => {
  const { apiKey } = await createTenant(database);
  const { proxy, url } = await proxyDatabase(database.url);
  const server = await startTestServer(url, {}, { storeMs: STORE_MS });
  await grant(connectClient(server, apiKey));
  proxy.setMode("swallow");
  await server.stop();

  const failures = server.log.filter(({ task }) => task !== undefined);
  expect(failures.map(({ task }) => task)).toEqual(expect.arrayContaining(["store_usage", "heartbeat"]));
  const reasons = failures.map(
    ({ err }) => (err as { readonly cause: { readonly message: string } }).cause.message,
  );
  expect(reasons.filter((reason) => /timeout/i.test(reason))).toEqual([]);
  expect(server.log.at(-1)?.msg).toBe("stopped");
});
