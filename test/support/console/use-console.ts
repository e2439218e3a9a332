import { type AdminWorld, createWorld } from "../calls/admin.ts";
import { type ServerInUse, useServer } from "../servers/use-server.ts";
import { SEEDED_DATABASE } from "./seed.ts";

/**
 * Starts a server for the tests of a file, on a copy of the database with the traffic (see `seedOfRun`), as
 * `useServer` does. Names, keys and times are the same in every file; what a file changes is its own.
 */
export function useConsole(): ServerInUse & Pick<AdminWorld, "administeredTenant"> {
  const { database, server } = useServer({}, {}, SEEDED_DATABASE);
  const { administeredTenant } = createWorld(database, server);
  return { database, server, administeredTenant };
}
