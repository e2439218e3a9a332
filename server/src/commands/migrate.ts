import { readArguments } from "../core/commands/arguments.ts";
import { CommandError, type Host } from "../core/commands/host.ts";
import { requireSchema, runMigrations } from "../core/commands/schema.ts";
import { readConfig } from "../core/config/config.ts";
import { requireCitus, runDistribution, runUndistribution } from "../features/citus/commands.ts";

/**
 * `migrate [--check]`: brings the schema up to date, or only checks it (exit code 1 if it is not). `migrate --citus` also
 * distributes the records over the workers of a Citus, and `migrate --undistribute` copies them back to the coordinator.
 */
export async function migrateCommand(host: Host): Promise<void> {
  const { check, citus, undistribute } = readArguments(host.args, {
    check: { type: "boolean", default: false },
    citus: { type: "boolean", default: false },
    undistribute: { type: "boolean", default: false },
  });
  if ([check, citus, undistribute].filter(Boolean).length > 1)
    throw new CommandError("Give one of --check, --citus and --undistribute.");
  const config = readConfig(host.env);
  if (undistribute) {
    for (const line of await runUndistribution(config)) host.print(line);
    return;
  }
  if (citus) await requireCitus(config);
  if (!check) for (const name of await runMigrations(config, host.tell)) host.print(`ran ${name}`);
  const unknown = await requireSchema(config);
  host.print(
    unknown.length === 0
      ? "The schema is current."
      : `The schema is newer than this server, which can use it: ${unknown.join(", ")}`,
  );
  if (citus) for (const line of await runDistribution(config)) host.print(line);
}
