import { adoptPepper, configuredPeppers } from "../access/pepper.ts";
import type { Config } from "../config/config.ts";
import { CommandError } from "./host.ts";
import { withPool } from "./with-pool.ts";

/**
 * Refuses to continue with a pepper that is not the installation's: every API key would be refused, and no
 * new one would work elsewhere.
 *
 * @throws CommandError that names the variable.
 */
export async function requirePepper(config: Config): Promise<void> {
  if (await withPool(config, (pool) => adoptPepper(pool, configuredPeppers(config)))) return;
  throw new CommandError(
    "ONCEWARD_API_KEY_PEPPER is not the pepper of this installation, so no API key would be valid: deploy/runbook.md#pepper_wrong",
  );
}
