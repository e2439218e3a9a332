import { adoptPepper, configuredPeppers } from "../auth/pepper.ts";
import type { Config } from "../config/config.ts";
import { openPool } from "../store/pool.ts";
import { CommandError } from "./host.ts";

/**
 * Refuses to continue with a pepper that is not the installation's: every API key would be refused, and no
 * new one would work elsewhere.
 *
 * @throws CommandError that names the variable.
 */
export async function requirePepper(config: Config): Promise<void> {
  const pool = openPool({
    databaseUrl: config.DATABASE_URL,
    size: 1,
    throughPgBouncer: config.ONCEWARD_PGBOUNCER,
  });
  try {
    if (await adoptPepper(pool, configuredPeppers(config))) return;
  } finally {
    await pool.close();
  }
  throw new CommandError(
    "ONCEWARD_API_KEY_PEPPER is not the pepper of this installation, so no API key would be valid: deploy/runbook.md#pepper_wrong",
  );
}
