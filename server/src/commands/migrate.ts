import { readConfig } from "../config.ts";
import { migrate, readSchemaState } from "../store/migrate.ts";
import { CommandError, type Host } from "./host.ts";

/** `migrate [--check]`: brings the schema up to date, or only says whether it is (exit code 1 if not). */
export async function migrateCommand(host: Host): Promise<void> {
  const config = readConfig(host.env);
  const databaseUrl = config.DATABASE_DIRECT_URL ?? config.DATABASE_URL;
  if (host.args.includes("--check")) return await check(host, databaseUrl);
  const ran = await migrate(databaseUrl, () => {});
  for (const name of ran) host.print(`ran ${name}`);
  host.print("The schema is current.");
}

async function check(host: Host, databaseUrl: string): Promise<void> {
  const schema = await readSchemaState(databaseUrl);
  switch (schema.kind) {
    case "current":
      return host.print("The schema is current.");
    case "ahead":
      return host.print(
        `The schema is ahead of this server, which goes on with it: ${schema.unknown.join(", ")}`,
      );
    case "behind":
      throw new CommandError(`The schema lacks ${schema.missing.join(", ")}. Run: onceward-server migrate`);
  }
}
