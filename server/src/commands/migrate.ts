import { type Config, readConfig } from "../config/config.ts";
import type { Command } from "../replica/feature.ts";
import { FEATURES } from "../replica/features.ts";
import { readArguments } from "./arguments.ts";
import { CommandError, type Host } from "./host.ts";
import { requireSchema, runMigrations } from "./schema.ts";

const OPTIONS = FEATURES.flatMap(({ migrateOptions }) => migrateOptions ?? []);
const NAMES = ["check", ...OPTIONS.map(({ name }) => name)];

/** `migrate`: brings the schema up to date, or only checks it. Features add options. */
export const migrate: Command = {
  name: "migrate",
  synopsis: `[${NAMES.map((name) => `--${name}`).join(" | ")}]`,
  summary:
    "bring the schema up to date, or only check it; distribute the records over a Citus, or copy them back",
  run: migrateCommand,
};

/**
 * `migrate [--check]`: brings the schema up to date, or only checks it (exit code 1 if it is not). The options of features
 * are run after the migrations or in their place.
 */
export async function migrateCommand(host: Host): Promise<void> {
  const given: Readonly<Record<string, unknown>> = readArguments(
    host.args,
    Object.fromEntries(NAMES.map((name) => [name, { type: "boolean", default: false } as const])),
  );
  if (NAMES.filter((name) => given[name] === true).length > 1)
    throw new CommandError(`Give one of ${NAMES.map((name) => `--${name}`).join(", ")}.`);
  const option = OPTIONS.find(({ name }) => given[name] === true);
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
