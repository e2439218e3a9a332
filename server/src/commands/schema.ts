import type { Config } from "../config/config.ts";
import { migrate, readSchemaState } from "../store/migrate.ts";
import { CommandError } from "./host.ts";

type Databases = Pick<Config, "DATABASE_URL" | "DATABASE_DIRECT_URL">;

/**
 * Runs the migrations that are missing, and answers their names.
 *
 * @throws CommandError where the database can't be used.
 */
export function runMigrations(databases: Databases): Promise<readonly string[]> {
  return onDatabase(databases, (url) => migrate(url, () => {}));
}

/**
 * Answers which migrations the database has that this server doesn't know: a newer one made them, and is served beside.
 *
 * @throws CommandError where the schema is older than this server, and where the database can't be used.
 */
export async function requireSchema(databases: Databases): Promise<readonly string[]> {
  const schema = await onDatabase(databases, readSchemaState);
  switch (schema.kind) {
    case "current":
      return [];
    case "ahead":
      return schema.unknown;
    case "behind":
      throw new CommandError(`The schema lacks ${schema.missing.join(", ")}. Run: onceward-server migrate`);
  }
}

/** The schema is changed and looked at past any pooler. */
async function onDatabase<Answer>(
  { DATABASE_URL, DATABASE_DIRECT_URL }: Databases,
  work: (url: string) => Promise<Answer>,
): Promise<Answer> {
  try {
    return await work(DATABASE_DIRECT_URL ?? DATABASE_URL);
  } catch (cause) {
    const name = DATABASE_DIRECT_URL === undefined ? "DATABASE_URL" : "DATABASE_DIRECT_URL";
    throw new CommandError(`Postgres at ${name} could not be used.`, { cause });
  }
}
