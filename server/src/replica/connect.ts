import { randomUUID } from "node:crypto";
import { EventEmitter } from "node:events";
import type { Logger } from "pino";
import type { OnRefused } from "../access/admission.ts";
import { InstallationWatch } from "../background/installation-watch.ts";
import { openNodePool } from "../citus/node-pool.ts";
import { openShards } from "../citus/shards.ts";
import { type Config, withCurrentUrls } from "../config/config.ts";
import { configuredIssuer } from "../config/configured-issuer.ts";
import { openConsolePage } from "../console/open-page.ts";
import { CommitWatch } from "../database/commit-watch.ts";
import type { Pool } from "../database/pool.ts";
import { shippedMigrations } from "../database/shipped-migrations.ts";
import { ensureTenant } from "../database/tenants/tenants.ts";
import { createDatabaseClockWatch, type DatabaseClockWatch } from "../domain/database-clock.ts";
import { openStoredValues } from "../encryption/stored-values.ts";
import type { RecordLoss } from "../records/late-keys.ts";
import { createTokenFloor } from "../records/token-floor.ts";
import type { BackgroundTask } from "../telemetry/background-metrics.ts";
import { createMetrics, type Metrics } from "../telemetry/metrics.ts";
import { TenantLabels } from "../telemetry/tenant-labels.ts";
import type { OpenTracing } from "../telemetry/tracing.ts";
import type { openMetricsExport } from "../tracing/export-metrics.ts";
import { openTracedParts } from "../tracing/traced-parts.ts";
import { openOpenApi } from "../transport/http/openapi.ts";
import { configuredTls } from "../transport/tls.ts";
import { VERSION } from "../version.ts";
import { openPools } from "./pools.ts";

/** Intervals and folders that only tests change. */
export interface ServerTuning {
  /** How often the records that calls wait for are read. */
  readonly waiterTickMs?: number;
  /** The shortest interval between fetches of the issuer's keys because of a token with an unknown key. */
  readonly jwksCooldownMs?: number;
  /** How often the TLS files are checked for renewals. */
  readonly certificateLookMs?: number;
  /** How long equal denied calls are counted together. */
  readonly denialWindowMs?: number;
  /** The maximum age of cached API keys and tenants. */
  readonly credentialAgeMs?: number;
  /** How often the conditions of degraded states are looked at. */
  readonly degradedLookMs?: number;
  /** How often the replica stores that it is live. */
  readonly heartbeatMs?: number;
  /** How long a stopping replica may take to store its last counts. */
  readonly storeMs?: number;
  /** The longest rest after a rendering of the metrics, which some tests read hundreds of times. */
  readonly metricsRestMs?: number;
  /** Another directory with the console's page. */
  readonly consoleDir?: string;
}

/** What loads OpenTelemetry's SDK; without a member, that is off. */
export interface OpenTelemetry {
  readonly openTracing?: OpenTracing;
  readonly openMetricsExport?: typeof openMetricsExport;
}

/** What a replica is made of before it has read anything. Nothing of it is connected yet. */
export type Resources = ReturnType<typeof openResources>;

/** What a replica reads before its parts are built, from which the parts are built without waiting for anything. */
export type Facts = Awaited<ReturnType<typeof connect>>;

/**
 * Opens what a replica is made of.
 *
 * @throws Error as `configuredTls`.
 */
export function openResources(config: Config, processLog: Logger, tuning: ServerTuning, sdk: OpenTelemetry) {
  const replica = { id: randomUUID(), version: VERSION };
  const log = processLog.child({ replica: replica.id });
  const tenantLabels = new TenantLabels();
  const metrics = createMetrics(VERSION, tenantLabels);
  const onFailed = (task: BackgroundTask) => (error: unknown) => {
    metrics.backgroundErrors.inc({ task });
    log.warn({ err: error, task }, "background task failed; retrying at the next interval");
  };
  const tls = configuredTls(config, {
    onRenewed: () => log.info("TLS uses the renewed files"),
    onFailed: onFailed("read_tls_files"),
    checkIntervalMs: tuning.certificateLookMs,
  });
  const traced = openTracedParts(sdk.openTracing, config, {
    instanceId: replica.id,
    version: VERSION,
    log,
    onExportFailed: () => metrics.backgroundErrors.inc({ task: "export_spans" }),
  });
  const events = new EventEmitter<{
    /** The installation has this id now. */
    installationChanged: [id: string];
    /** A record, named by `recordName`, may have been settled on another replica. */
    settledElsewhere: [recordName: string];
    /** A call exceeded a quota. */
    refusedByQuota: Parameters<OnRefused>;
  }>();
  const tokenFloor = createTokenFloor();
  const recordLoss: RecordLoss = { lastAtMs: undefined };
  const commits = new CommitWatch();
  const installation = new InstallationWatch({
    replicaId: replica.id,
    log,
    tokenFloor,
    recordLoss,
    onDetected: () => metrics.installationChanges.inc(),
    onChanged: (id) => void events.emit("installationChanged", id),
  });
  return {
    config,
    tuning,
    replica,
    log,
    tenantLabels,
    metrics,
    /** Returns the handler of a task's errors. A failed task is retried at its next interval. */
    onFailed,
    tls,
    traced,
    metricsExport: sdk.openMetricsExport?.(replica, metrics, onFailed("export_metrics")),
    installation,
    /** Connects parts whose order of creation is the opposite of the events' direction. */
    events,
    stored: openStoredValues({ config, metrics, log }),
    databaseClock: openDatabaseClock(metrics, log),
    tokenFloor,
    recordLoss,
    commits,
    pools: openPools(config, { metrics, log, onConnected: installation.look, recordLoss, commits }),
  };
}

function openDatabaseClock(metrics: Metrics, log: Logger): DatabaseClockWatch {
  return createDatabaseClockWatch({
    onMoved(move) {
      metrics.databaseClockMoves.inc();
      log.error(move, "database clock jumped; retention follows the previous clock");
    },
    onAccepted: (move) => log.warn(move, "database clock trusted again"),
  });
}

const CONNECT = { name: "connect", text: "select" };

/** Connects to the database, and reads all facts. @throws if the database cannot be used. */
export async function connect(resources: Resources) {
  const { config, tuning, log, traced, stored, onFailed, pools } = resources;
  // Each connection looks at the installation before its first statement.
  await pools.pool.run(CONNECT, []);
  await stored.requireKeys(pools.pool);
  const pool = traced.pool(pools.pool);
  const issuer = await configuredIssuer(config, {
    log,
    onFailed: onFailed("load_jwks"),
    cooldownMs: tuning.jwksCooldownMs,
  });
  const page = await openConsolePage({
    ...{ config, log, pool, issuer },
    maxAgeMs: tuning.credentialAgeMs,
    dir: tuning.consoleDir,
  });
  const nodes = { databaseUrl: () => withCurrentUrls(config).DATABASE_URL, openPool: pools.openOther };
  const shards = await openShards(pool, {
    onUngrouped: (reason) =>
      log.warn({ reason }, "statements are not grouped by shard of Citus, and are slow"),
    onUnreachable: ({ host, port }) =>
      log.warn({ node: `${host}:${port}` }, "a node of Citus does not answer"),
    openNode: (node) => traced.pool(openNodePool(nodes, node)),
  });
  return {
    ...resources,
    /** The pool of calls, traced while tracing is on. */
    pool,
    issuer,
    page,
    /** Undefined on a plain Postgres. */
    shards,
    newestMigration: (await shippedMigrations()).at(-1) ?? "",
    anonymousTenant: await ensureAnonymousTenant(pools.pool, config),
    openApi: await openOpenApi(),
  };
}

async function ensureAnonymousTenant(pool: Pool, config: Config): Promise<string | undefined> {
  const name = config.ONCEWARD_ANONYMOUS_TENANT;
  if (name !== undefined) await ensureTenant(pool, name);
  return name;
}
