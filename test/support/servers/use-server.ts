import { onTestFinished } from "vitest";
import type { ServerTuning } from "../../../server/src/replica/connect.ts";
import { connectClient, type IdempotencyClient } from "../calls/clients.ts";
import type { TestDatabase } from "../database/database.ts";
import { useDatabase } from "../database/use-database.ts";
import { useStarted } from "../use-started.ts";
import { startTestServer, type TestServer } from "./server.ts";
import { type ServerProcess, startServerProcess } from "./server-process.ts";
import { createTenant, type PolicyColumns, type TestTenant } from "./tenants.ts";

/** A server and its own database. Both can be used from the first test or hook on, not earlier. */
export interface ServerInUse {
  readonly database: TestDatabase;
  readonly server: TestServer;
}

type Environment = Readonly<Record<string, string>>;

/**
 * Starts a server on a new database, a copy of `template`, for the tests of the file, or of the `describe` that calls this.
 * `env` overrides the server's configuration, `tuning` its times.
 */
export function useServer(env: Environment = {}, tuning: ServerTuning = {}, template?: string): ServerInUse {
  const database = useDatabase(template);
  return { database, server: useServerOn(database, env, tuning) };
}

/** Starts a server on a database for the tests of the file, or of the `describe` that calls this. `env` may be known later. */
export function useServerOn(
  database: Pick<TestDatabase, "url">,
  env: Environment | (() => Environment) = {},
  tuning: ServerTuning = {},
): TestServer {
  return useStarted(
    () => startTestServer(database.url, typeof env === "function" ? env() : env, tuning),
    (server) => server.stop(),
  );
}

/** Starts a server that stops when the test ends. */
export async function startServerOfTest(...how: Parameters<typeof startTestServer>): Promise<TestServer> {
  const server = await startTestServer(...how);
  onTestFinished(() => server.stop());
  return server;
}

/** Starts a server in a process of its own, which ends with the test. */
export async function startProcessOfTest(
  ...how: Parameters<typeof startServerProcess>
): Promise<ServerProcess> {
  const server = await startServerProcess(...how);
  onTestFinished(() => server.end());
  return server;
}

/** Creates a tenant with a client before the first test, for tests that each use keys of their own. */
export function useCaller(
  { database, server }: ServerInUse,
  policy: PolicyColumns = {},
): { readonly tenant: TestTenant; readonly client: IdempotencyClient } {
  const tenant = useStarted(() => createTenant(database, policy));
  return { tenant, client: useStarted(() => connectClient(server, tenant.apiKey)) };
}
