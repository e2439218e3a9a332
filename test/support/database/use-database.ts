import { useStarted } from "../use-started.ts";
import { createTestDatabase, type TestDatabase } from "./database.ts";

/** Creates a database for the tests of the file, or of the `describe` that calls this: a copy of `template`. */
export function useDatabase(template?: string): TestDatabase {
  return useStarted(
    () => createTestDatabase(template),
    (database) => database.drop(),
  );
}
