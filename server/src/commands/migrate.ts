import { readConfig } from "../config/config.ts";
import { readArguments } from "./arguments.ts";
import type { Host } from "./host.ts";
import { requireSchema, runMigrations } from "./schema.ts";

/** `migrate [--check]`: brings the schema up to date, or only checks it (exit code 1 if it is not). */
export async function migrateCommand(host: Host): Promise<void> {
  const { check } = readArguments(host.args, { check: { type: "boolean", default: false } });
  const config = readConfig(host.env);
  if (!check) for (const name of await runMigrations(config)) host.print(`ran ${name}`);
  const unknown = await requireSchema(config);
  host.print(
    unknown.length === 0
      ? "The schema is current."
      : `The schema is newer than this server, which can use it: ${unknown.join(", ")}`,
  );
}
