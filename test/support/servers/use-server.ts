import { afterAll, beforeAll } from "vitest";
import type { ServerTuning } from "../../../server/src/replica/connect.ts";
import type { TestDatabase } from "../database/database.ts";
import { startedLater, useDatabase } from "../database/use-database.ts";
import { startTestServer, type TestServer } from "./server.ts";

/** A server and its own database. Both can be used from the first test or hook on, not earlier. */
export interface ServerInUse {
  readonly database: TestDatabase;
  readonly server: TestServer;
}

/**
 * Starts a server on a new database before the first test of the file, or of the `describe` that calls this,
 * and ends both after the last one. `env` overrides the server's configuration, `tuning` its times. The database is
 * a copy of `template`.
 */
export function useServer(
  env: Readonly<Record<string, string>> = {},
  tuning: ServerTuning = {},
  template?: string,
): ServerInUse {
  const database = useDatabase(template);
  let server: TestServer | undefined;
  beforeAll(async () => {
    server = await startTestServer(database.url, env, tuning);
  });
  afterAll(() => server?.stop());
  return { database, server: startedLater(() => server) };
}
