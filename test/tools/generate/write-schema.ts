import { writeFile } from "node:fs/promises";
import { dumpSchema, SCHEMA_FILE } from "../../support/database/schema-dump.ts";
import { withMigratedPostgres } from "./migrated-postgres.ts";

/** `npm run generate -- schema`: migrates an empty database and writes its schema to a file. */
await withMigratedPostgres(async (url) => writeFile(SCHEMA_FILE, await dumpSchema(url)));
