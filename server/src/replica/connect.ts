import { randomUUID } from "node:crypto";
import { EventEmitter } from "node:events";
import type { Logger } from "pino";
import type { OnRefused } from "../access/admission.ts";
import { InstallationWatch } from "../background/installation-watch.ts";
import { type Config, withCurrentUrls } from "../config/config.ts";
import { configuredIssuer } from "../config/configured-issuer.ts";
import { CommitWatch } from "../database/commit-watch.ts";
import type { Pool } from "../database/pool.ts";
import { shippedMigrations } from "../database/shipped-migrations.ts";
import { ensureTenant } from "../database/tenants/tenants.ts";
import { createDatabaseClockWatch, type DatabaseClockWatch } from "../domain/database-clock.ts";
import { PLAIN_VALUES } from "../records/engine/record-values.ts";
import type { RecordLoss } from "../records/late-keys.ts";
import { signedFormat } from "../records/replay/entry-format.ts";
import { createTokenFloor } from "../records/token-floor.ts";
import type { BackgroundTask } from "../telemetry/background-metrics.ts";
import { createMetrics, type Metrics } from "../telemetry/metrics.ts";
import { TenantLabels } from "../telemetry/tenant-labels.ts";
import type { OpenTracing } from "../telemetry/tracing.ts";
import { openTracedParts } from "../tracing/traced-parts.ts";
import { openOpenApi } from "../transport/http/openapi.ts";
import { configuredTls } from "../transport/tls.ts";
import { VERSION } from "../version.ts";
import type { StoredValues } from "./feature.ts";
import { FEATURES } from "./features.ts";
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

/** What a replica is made of before it has read anything. Nothing of it is connected yet. */
export type Resources = ReturnType<typeof openResources>;

/** What a replica reads before its parts are built, from which the parts are built without waiting for anything. */
export type Facts = Awaited<ReturnType<typeof connect>>;

/**
 * Opens what a replica is made of.
 *
 * @param openTracing undefined: tracing is off.
 * @throws Error as `configuredTls`.
 */
export function openResources(
  config: Config,
  processLog: Logger,
  tuning: ServerTuning,
  openTracing: OpenTracing | undefined,
) {
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
  const traced = openTracedParts(openTracing, config, {
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
    installation,
    /** Connects parts whose order of creation is the opposite of the events' direction. */
    events,
    stored: openValues(config, metrics, log),
    databaseClock: openDatabaseClock(metrics, log),
    tokenFloor,
    recordLoss,
    commits,
    pools: openPools(config, { metrics, log, onConnected: installation.look, recordLoss, commits }),
  };
}

function openValues(config: Config, metrics: Metrics, log: Logger): StoredValues {
  const [opened] = FEATURES.flatMap(({ openValues }) => openValues?.({ config, metrics, log }) ?? []);
  return (
    opened ?? {
      values: PLAIN_VALUES,
      entries: signedFormat(config.ONCEWARD_API_KEY_PEPPER),
      async requireKeys() {},
      tasks: () => [],
    }
  );
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
  const [page] = await openAll(({ openPage }) =>
    openPage?.({ config, log, pool, maxAgeMs: tuning.credentialAgeMs, issuer, dir: tuning.consoleDir }),
  );
  const [shards] = await openAll(({ openShards }) =>
    openShards?.({
      databaseUrl: () => withCurrentUrls(config).DATABASE_URL,
      log,
      pool,
      openPool: pools.openOther,
      traced: traced.pool,
    }),
  );
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

/** Returns what the features open, without those that open nothing. */
async function openAll<Opened>(
  open: (feature: (typeof FEATURES)[number]) => Promise<Opened | undefined> | undefined,
): Promise<readonly Opened[]> {
  const opened: Opened[] = [];
  for (const feature of FEATURES) {
    const each = await open(feature);
    if (each !== undefined) opened.push(each);
  }
  return opened;
}

async function ensureAnonymousTenant(pool: Pool, config: Config): Promise<string | undefined> {
  const name = config.ONCEWARD_ANONYMOUS_TENANT;
  if (name !== undefined) await ensureTenant(pool, name);
  return name;
}
