import { afterAll, beforeAll } from "vitest";
import type { ServerTuning } from "../../../server/src/replica/connect.ts";
import { createTestDatabase, TEMPLATE_DATABASE, type TestDatabase } from "../database/database.ts";
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
  template = TEMPLATE_DATABASE,
): ServerInUse {
  let database: TestDatabase | undefined;
  let server: TestServer | undefined;

  beforeAll(async () => {
    database = await createTestDatabase(template);
    server = await startTestServer(database.url, env, tuning);
  });

  afterAll(async () => {
    await server?.stop();
    await database?.drop();
  });

  return { database: startedLater(() => database), server: startedLater(() => server) };
}

/** Returns a stand-in for an object that is started later, so that a test can name it as a constant. */
function startedLater<Started extends object>(find: () => Started | undefined): Started {
  const started = () => {
    const object = find();
    if (object === undefined) throw new Error("the server is started before the first test, not earlier");
    return object;
  };
  return new Proxy({} as Started, {
    get: (_, property) => Reflect.get(started(), property),
    has: (_, property) => Reflect.has(started(), property),
    ownKeys: () => Reflect.ownKeys(started()),
    // A proxy may report a property that its own target lacks only as a configurable one.
    getOwnPropertyDescriptor(_, property) {
      const descriptor = Reflect.getOwnPropertyDescriptor(started(), property);
      return descriptor && { ...descriptor, configurable: true };
    },
  });
}
