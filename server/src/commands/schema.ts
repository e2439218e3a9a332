import type { Config } from "../config/config.ts";
import { readUnsupportedEngine } from "../database/engine.ts";
import { migrate, readCurrentSchema, readSchemaState } from "../database/migrate.ts";
import { CommandError } from "./host.ts";

/** The addresses of the database in the configuration. */
export type Databases = Pick<Config, "DATABASE_URL" | "DATABASE_DIRECT_URL">;

/**
 * Runs the missing migrations and returns their names.
 *
 * @param report receives which transactions a migration waits for.
 * @throws CommandError if a migration would stop the service, if the database cannot be used, or if tables would be created
 *   in another schema than `public`.
 */
export function runMigrations(
  databases: Databases,
  report: (line: string) => void,
): Promise<readonly string[]> {
  return onDatabase(databases, async (url) => {
    const schema = await readCurrentSchema(url);
    if (schema !== "public")
      throw new CommandError(
        `The tables must be in the schema public, but search_path leads to ${schema ?? "no schema"}: set it to public for this role and database.`,
      );
    return await migrate(url, report);
  });
}

/**
 * Returns the database's migrations that this server does not know: a newer server made them, and both can
 * serve.
 *
 * @throws CommandError if the schema is older than this server, or if the database cannot be used.
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

/**
 * Runs `work` on the database without a pooler in between.
 *
 * @throws CommandError if the database cannot be used, or if its engine is not supported.
 */
export async function onDatabase<Answer>(
  { DATABASE_URL, DATABASE_DIRECT_URL }: Databases,
  work: (url: string) => Promise<Answer>,
): Promise<Answer> {
  const url = DATABASE_DIRECT_URL ?? DATABASE_URL;
  try {
    const engine = await readUnsupportedEngine(url);
    if (engine !== undefined) {
      throw new CommandError(
        `The database is ${engine.name}, which is not supported. ${engine.reason} See server/decisions/0017-other-engines.md.`,
      );
    }
    return await work(url);
  } catch (cause) {
    if (cause instanceof CommandError) throw cause;
    const name = DATABASE_DIRECT_URL === undefined ? "DATABASE_URL" : "DATABASE_DIRECT_URL";
    throw new CommandError(`Postgres at ${name} could not be used.`, { cause });
  }
}
