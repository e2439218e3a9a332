import { writeFile } from "node:fs/promises";
import { dumpSchema, SCHEMA_FILE } from "../../helpers/database/schema-dump.ts";
import { withMigratedPostgres } from "./migrated-postgres.ts";

/** `npm run schema:dump`: migrates an empty database and writes its schema to a file. */
await withMigratedPostgres(async (url) => writeFile(SCHEMA_FILE, await dumpSchema(url)));
