import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import { endsWithin } from "../background/ends-within.ts";
import { type Config, redactedConfig } from "../config/config.ts";
import { STATEMENT_TIMEOUT_MS } from "../domain/statement-times.ts";
import { VERSION } from "../version.ts";
import { compose, type Replica } from "./compose.ts";
import type { OpenTelemetry, Resources, ServerTuning } from "./connect.ts";
import { connect, type Facts, openResources } from "./connect.ts";
import { listenOnAll } from "./ports.ts";

/** The time for the last spans and metrics to be exported, if calls took the whole time of the drain. */
const MIN_EXPORT_MS = 1000;
/**
 * The time in which a stopping replica stores its last counts and audit events and removes its row: as long as Postgres lets one
 * statement run. A database that does not answer then delays the stop by this, and by no statement's own limit.
 */
const STORE_MS = STATEMENT_TIMEOUT_MS;

/** The ports that a server listens on. */
export type Addresses = Awaited<ReturnType<typeof listenOnAll>>;

/**
 * Starts a replica: opens its resources, reads the facts, builds all parts, listens on the three ports, and reports SERVING.
 * The schema must be up to date.
 *
 * Returns its addresses, and a function that drains it.
 *
 * @throws Error if the database cannot be used or ports are taken, as `configuredTls`. Everything is closed then.
 */
export async function startServer(
  config: Config,
  processLog: Logger,
  tuning: ServerTuning = {},
  sdk: OpenTelemetry = {},
) {
  const resources = openResources(config, processLog, tuning, sdk);
  const facts = await connect(resources).catch(async (error: unknown) => {
    await close(resources, STORE_MS, 0);
    resources.log.info("stopped");
    throw error;
  });
  /** Why the replica must get no calls; empty while it serves. */
  const unready = ["starting"];
  const replica = compose(facts, () => unready);
  try {
    const addresses = await serve(resources, replica);
    unready.length = 0;
    replica.ports.grpc.setServing(true);
    resources.log.info({ ...addresses, version: VERSION, config: redactedConfig(config) }, "serving");
    return { addresses, stop: () => stop(facts, replica, unready) };
  } catch (error) {
    await stop(facts, replica, unready);
    throw error;
  }
}

/** Listens, and starts the background tasks. */
async function serve({ config, tls, metricsExport }: Resources, replica: Replica): Promise<Addresses> {
  const { ports, management, background, degraded, suspendWatch } = replica;
  const addresses = await listenOnAll({ ...ports, management }, config);
  tls?.start();
  metricsExport?.start();
  await background.start();
  degraded.start();
  suspendWatch.start();
  return addresses;
}

/**
 * Drains: reports NOT_SERVING, waits until balancers notice, wakes waiting calls with UNAVAILABLE, sends
 * GOAWAY, lets other calls finish, stores its last counts, and closes. Every acknowledged claim is in Postgres already.
 */
async function stop(facts: Facts, replica: Replica, unready: string[]): Promise<void> {
  const { config, log } = facts;
  const { ports, management, background, degraded, suspendWatch, waiters, cache, denials } = replica;
  const served = unready.length === 0;
  unready.splice(0, unready.length, "draining");
  ports.grpc.setServing(false);
  ports.http.startDraining();
  log.info({ delayMs: config.ONCEWARD_DRAIN_DELAY }, "draining");
  await delay(served ? config.ONCEWARD_DRAIN_DELAY : 0);
  waiters.drain();
  const graceMs = config.ONCEWARD_DRAIN_TIMEOUT;
  const graceEndsAtMs = performance.now() + graceMs;
  const working = background.stopWork();
  await Promise.all([ports.grpc.close(graceMs), ports.http.close(graceMs)]);
  cache.close();
  degraded.stop();
  suspendWatch.stop();
  const storeEndsAtMs = performance.now() + (facts.tuning.storeMs ?? STORE_MS);
  const stored = working.then(() => Promise.all([background.finish(), denials.settled()]));
  await endsWithin(leftMs(storeEndsAtMs), stored);
  // What is not stored by now fails with its connection.
  const limitMs = leftMs(storeEndsAtMs);
  await Promise.all([
    facts.shards?.close(limitMs),
    management.close(),
    close(facts, limitMs, graceEndsAtMs),
    stored,
  ]);
  log.info("stopped");
}

/** Closes what `openResources` opened. `limitMs`: as Pool.close. */
async function close(
  { log, pools, tls, traced, metricsExport }: Resources,
  limitMs: number,
  graceEndsAtMs: number,
): Promise<void> {
  const exportMs = Math.max(leftMs(graceEndsAtMs), MIN_EXPORT_MS);
  const [isExported] = await Promise.all([
    endsWithin(exportMs, Promise.resolve(metricsExport?.stop())),
    pools.close(limitMs),
    tls?.stop(),
    traced.tracing?.close(exportMs),
  ]);
  if (!isExported) log.warn("the last metrics were not exported");
}

function leftMs(endsAtMs: number): number {
  return Math.max(0, endsAtMs - performance.now());
}
