import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Config, readConfig } from "../../../server/src/config/config.ts";
import type { ServerTuning } from "../../../server/src/replica/connect.ts";
import { type Addresses, startServer } from "../../../server/src/replica/server.ts";
import { createLog, type LogLevel } from "../../../server/src/telemetry/log.ts";

/** The pepper in the digests of test tenants' keys. */
export const TEST_PEPPER = "a pepper that only tests have, 0123456789";

let sockets = 0;

/** Returns the path of another Unix socket. */
export function newSocketPath(): string {
  return join(tmpdir(), `onceward-${process.pid}-${sockets++}.sock`);
}

/** Returns the setting of a Unix socket: with `ONCEWARD_TEST_SOCKET=true`, native gRPC of tests goes over one. */
export function socketSetting(): { readonly ONCEWARD_SOCKET?: string } {
  return process.env.ONCEWARD_TEST_SOCKET === "true" ? { ONCEWARD_SOCKET: newSocketPath() } : {};
}

/** A real server in this process, on free ports. */
export interface TestServer extends Addresses {
  readonly config: Config;
  /** The log as parsed JSON lines. */
  readonly log: readonly Record<string, unknown>[];
  /** Drains; may be called again. */
  stop(): Promise<void>;
}

/** Starts a server on a database. `env` overrides its configuration. */
export async function startTestServer(
  databaseUrl: string,
  env: Readonly<Record<string, string>> = {},
  tuning: ServerTuning = {},
): Promise<TestServer> {
  const config = readConfig({
    DATABASE_URL: databaseUrl,
    ONCEWARD_API_KEY_PEPPER: TEST_PEPPER,
    ONCEWARD_GRPC_PORT: "0",
    ONCEWARD_HTTP_PORT: "0",
    ONCEWARD_MANAGEMENT_PORT: "0",
    ONCEWARD_DRAIN_DELAY: "0s",
    // A test that needs a sweep runs it itself.
    ONCEWARD_SWEEP_INTERVAL: "1h",
    // Tests move timestamps in SQL, which does not change a copy in memory.
    ONCEWARD_CACHE_MIB: "0",
    ...socketSetting(),
    ...env,
  });
  const log: Record<string, unknown>[] = [];
  const level: LogLevel = config.ONCEWARD_LOG_LEVEL;
  const output = { write: (line: string) => log.push(JSON.parse(line)) };
  // Tests count statements and waiting calls in the metrics, some hundreds of times.
  const server = await startServer(config, createLog(level, output), { metricsRestMs: 0, ...tuning });
  let stopped: Promise<void> | undefined;
  return {
    ...server.addresses,
    config,
    log,
    stop() {
      stopped ??= server.stop();
      return stopped;
    },
  };
}
