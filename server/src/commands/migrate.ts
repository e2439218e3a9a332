import { CITUS_OPTIONS } from "../citus/migrate-options.ts";
import { type Config, readConfig } from "../config/config.ts";
import { readArguments } from "./arguments.ts";
import { CommandError, type Host } from "./host.ts";
import { requireSchema, runMigrations } from "./schema.ts";

/** The options, of which at most one is given. */
export const MIGRATE_OPTION_NAMES = ["check", ...CITUS_OPTIONS.map(({ name }) => name)];

/**
 * `migrate [--check]`: brings the schema up to date, or only checks it (exit code 1 if it is not). Those of Citus
 * run after the migrations or in their place.
 */
export async function migrate(host: Host): Promise<void> {
  const given: Readonly<Record<string, unknown>> = readArguments(
    host.args,
    Object.fromEntries(
      MIGRATE_OPTION_NAMES.map((name) => [name, { type: "boolean", default: false } as const]),
    ),
  );
  if (MIGRATE_OPTION_NAMES.filter((name) => given[name] === true).length > 1)
    throw new CommandError(`Give one of ${MIGRATE_OPTION_NAMES.map((name) => `--${name}`).join(", ")}.`);
  const option = CITUS_OPTIONS.find(({ name }) => given[name] === true);
  const config = readConfig(host.env);
  if (option === undefined || option.withMigrations) {
    await option?.check?.(config);
    await migrateSchema(host, config, given.check === true);
  }
  if (option !== undefined) for (const line of await option.run(config)) host.print(line);
}

async function migrateSchema(host: Host, config: Config, onlyCheck: boolean): Promise<void> {
  if (!onlyCheck) for (const name of await runMigrations(config, host.report)) host.print(`ran ${name}`);
  const unknown = await requireSchema(config);
  host.print(
    unknown.length === 0
      ? "The schema is current."
      : `The schema is newer than this server, which can use it: ${unknown.join(", ")}`,
  );
}
