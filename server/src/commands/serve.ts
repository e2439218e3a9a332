import { areMetricsExported, type Config, isTracingOn, readConfig } from "../config/config.ts";
import { probePooler, whyPgBouncerSwitchIsMissing } from "../database/pooler.ts";
import { type Addresses, startServer } from "../replica/server.ts";
import { createLog } from "../telemetry/log.ts";
import { CommandError, type Host } from "./host.ts";
import { requirePepper } from "./pepper.ts";
import { requireSchema } from "./schema.ts";

/** `serve`: runs a replica until a stop is requested. Never changes the schema. */
export async function serve(host: Host): Promise<void> {
  const config = readConfig(host.env);
  await requireSchema(config);
  await requirePgBouncerSwitch(config);
  await requirePepper(config);
  await serveUntilStopped(host, config);
}

/** Starts a server, calls `onStarted`, and drains the server when a stop is requested. */
export async function serveUntilStopped(
  host: Host,
  config: Config,
  onStarted: (addresses: Addresses) => void = () => {},
): Promise<void> {
  const stopRequested = host.untilStopRequested();
  const log = createLog(config.ONCEWARD_LOG_LEVEL, host.logDestination);
  // The SDK is loaded only for what is on: it takes memory.
  const tracing = isTracingOn(config) ? await import("../tracing/opentelemetry.ts") : undefined;
  const metrics = areMetricsExported(config) ? await import("../tracing/export-metrics.ts") : undefined;
  const server = await startServer(config, log, {}, { ...tracing, ...metrics });
  try {
    onStarted(server.addresses);
    await stopRequested;
  } finally {
    await server.stop();
  }
}

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
    `${missing} Set ONCEWARD_PGBOUNCER=true, and give the role its settings: server/settings.md, "PgBouncer".`,
  );
}
