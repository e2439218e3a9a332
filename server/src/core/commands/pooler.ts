import type { Config } from "../config/config.ts";
import { probePooler, whyPgBouncerSwitchIsMissing } from "../store/pooler.ts";
import { CommandError } from "./host.ts";

/**
 * Refuses to continue if `DATABASE_URL` leads to PgBouncer in a mode in which the server would answer nothing
 * without `ONCEWARD_PGBOUNCER`. Opens one connection if there is no pooler, and none if the variable is set.
 *
 * @throws CommandError that names the variable, or if the database cannot be used.
 */
export async function requirePgBouncerSwitch(config: Config): Promise<void> {
  if (config.ONCEWARD_PGBOUNCER) return;
  const pooler = await probePooler(config.DATABASE_URL).catch((cause: unknown) => {
    throw new CommandError("Postgres at DATABASE_URL could not be used.", { cause });
  });
  const missing = whyPgBouncerSwitchIsMissing(pooler, config);
  if (missing === undefined) return;
  throw new CommandError(
    `${missing} Set ONCEWARD_PGBOUNCER=true, and give the role its settings: server/README.md, "PgBouncer".`,
  );
}
