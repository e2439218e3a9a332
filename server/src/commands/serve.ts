import { type Config, readConfig } from "../config/config.ts";
import { type Addresses, createServer } from "../server.ts";
import { createLog } from "../telemetry/log.ts";
import type { Host } from "./host.ts";
import { requireSchema } from "./schema.ts";

/** `serve`: runs a replica until a stop is requested. Never changes the schema. */
export async function serve(host: Host): Promise<void> {
  const config = readConfig(host.env);
  await requireSchema(config);
  await serveUntilStopped(host, config);
}

/** Starts a server, calls `onStarted`, and drains the server when a stop is requested. */
export async function serveUntilStopped(
  host: Host,
  config: Config,
  onStarted: (addresses: Addresses) => void = () => {},
): Promise<void> {
  const stopRequested = host.untilStopRequested();
  const server = createServer(config, createLog(config.ONCEWARD_LOG_LEVEL, host.logDestination));
  try {
    onStarted(await server.start());
    await stopRequested;
  } finally {
    await server.stop();
  }
}
