import { type Background, createBackground } from "./background-tasks.ts";
import type { Facts } from "./connect.ts";
import { createAdmission, type OnRefused } from "./core/admission/admission.ts";
import { createStorageTotals } from "./core/admission/storage-totals.ts";
import { parseApiKey } from "./core/auth/api-key.ts";
import { createAuthenticator } from "./core/auth/authenticate.ts";
import { configuredPeppers } from "./core/auth/pepper.ts";
import { createHeartbeat } from "./core/background/heartbeat.ts";
import { createKeyUse } from "./core/background/key-use.ts";
import { createSuspendWatch } from "./core/background/suspend-watch.ts";
import { openReplicaCache, type ReplicaCache } from "./core/cache/replica-cache.ts";
import {
  createOperationLog,
  createOperationReport,
  joinHooks,
  type OperationHooks,
} from "./core/claims/after-operation.ts";
import { createIdempotencyService } from "./core/claims/service.ts";
import { createWaiters, type Waiters } from "./core/claims/waiters.ts";
import { withCurrentUrls } from "./core/config/config.ts";
import { isSkewed } from "./core/domain/clock-offset.ts";
import { createRecordTarget } from "./core/domain/record-target.ts";
import type { CoreParts, FeatureParts } from "./core/feature.ts";
import { createTenantLimiter } from "./core/store/batching/fair-queue.ts";
import { findResolved } from "./core/store/records/read-records.ts";
import { createRecordStore } from "./core/store/records/record-store.ts";
import { createDenials } from "./core/transport/denials.ts";
import { createManagementServer } from "./core/transport/management/server.ts";
import { createPipeline } from "./core/transport/pipeline.ts";
import { type Route, routesOf } from "./core/transport/route.ts";
import { traceBatch } from "./features/tracing/traced-batch.ts";
import { FEATURES } from "./features.ts";
import { IdempotencyService } from "./gen/onceward/v1/idempotency_pb.ts";
import { createCallersPorts } from "./ports.ts";
import { createLoadMeter, createReplicaDegradedStates, type StateSources } from "./replica-state.ts";

/** The parts of a replica that are started and stopped. */
export type Replica = ReturnType<typeof compose>;

/**
 * Builds all parts of a replica from what was read, and connects them. Nothing runs yet. A part may refer to one that is built
 * after it, in functions that are called when all parts exist.
 *
 * @param unreadyReasons returns why the replica must get no calls; none: it is ready.
 */
export function compose(facts: Facts, unreadyReasons: () => readonly string[]) {
  const { config, log, metrics, replica, pools, databaseClock, installation, tuning, shards, tls } = facts;
  const { cache, waiters, onSettled } = composeWaiting(facts);
  const sources: StateSources = {
    redisBypassed: cache.redisBypassed,
    schemaAhead: () => (heartbeat.lastBeaten()?.schemaVersion ?? "") > facts.newestMigration,
    clockSkewed: () => isSkewed(heartbeat.lastBeaten()?.clock ?? { aheadMs: 0, uncertaintyMs: 0 }),
    databaseClockMoved: databaseClock.hasMoved,
    awayNodes: () => shards?.awayNodes() ?? 0,
    pool: pools.pool.load,
    poolSize: config.ONCEWARD_POOL_SIZE,
    sweepLateS: () => background.sweepLateS(),
    callsInFlight: () => core.pipeline.callsInFlight(),
    connections: () => ports.grpc.connections() + ports.http.connections(),
    operations: metrics.operations,
  };
  const degraded = createReplicaDegradedStates(sources, { log, lookMs: tuning.degradedLookMs });
  const load = createLoadMeter(sources);
  const heartbeat = createHeartbeat({
    pool: pools.heartbeatPool,
    replica,
    state: () => ({ degraded: degraded.reasons(), load: load() }),
    look: installation.look,
    databaseClock,
    tokenFloor: facts.tokenFloor,
    onFailed: facts.onFailed("heartbeat"),
    intervalMs: tuning.heartbeatMs,
  });
  const denials = createDenials(pools.pool, log, tuning.denialWindowMs);
  const { core, keyUse, totals } = composeCore(facts, {
    liveReplicas: heartbeat.liveReplicas,
    denials,
    onSettled,
    replicaState: { id: replica.id, degraded: degraded.reasons, lastBeaten: heartbeat.lastBeaten },
    onRefused(tenantId, cause, mode, namespace) {
      if (namespace !== undefined) hooks.limited({ tenantId, namespace }, cause, mode);
    },
  });
  const features = composeFeatures(core);
  const hooks = joinHooks(features.flatMap((feature) => feature.hooks ?? []));
  const background: Background = createBackground({ facts, core, features, heartbeat, keyUse, totals });
  const ports = createCallersPorts(config, {
    routes: [
      ...idempotencyRoutes(facts, core, hooks, { cache, waiters }),
      ...features.flatMap(({ routes }) => routes ?? []),
    ],
    pipeline: facts.traced.pipeline(core.pipeline),
    tls,
    log,
    openApi: facts.openApi,
    console: facts.page?.createPage(core),
  });
  const management = createManagementServer({ metrics, unreadyReasons, tls });
  metrics.watch({
    pool: pools.pool.load,
    waiters: waiters.count,
    liveReplicas: heartbeat.liveReplicas,
    cacheBytes: cache.bytes,
    degraded: degraded.active,
    databaseClockMovedMs: databaseClock.movedMs,
    tlsExpiresInS: () => tls?.expiresInS() ?? new Map(),
    callsInFlight: sources.callsInFlight,
    connections: () => ({
      grpc: ports.grpc.connections(),
      http: ports.http.connections(),
      management: management.connections(),
    }),
    ...Object.assign({ ambiguousRecords: () => new Map() }, ...features.map(({ watched }) => watched)),
  });

  /** Drops what was read from the database, and names copies after this installation. */
  function dropCopies(installationId: string): void {
    core.authenticator.databaseChanged();
    cache.moveTo(installationId);
  }
  facts.onInstallationChanged(dropCopies);
  const suspendWatch = createSuspendWatch({
    onResumed(suspendedMs) {
      dropCopies(installation.id());
      log.warn({ suspendedMs: Math.round(suspendedMs) }, "the machine was suspended; caches are dropped");
    },
  });
  return { ports, management, background, degraded, suspendWatch, waiters, cache, denials };
}

function composeFeatures(core: CoreParts): readonly FeatureParts[] {
  const composed: FeatureParts[] = [];
  for (const { compose } of FEATURES) if (compose) composed.push(compose(core, [...composed]));
  return composed;
}

/** Builds the cache, whose channel wakes waiting calls, and the waiting calls, for which it listens. */
function composeWaiting({
  config,
  log,
  metrics,
  installation,
  stored,
  pools,
  shards,
  tuning,
  traced,
}: Facts) {
  const cache: ReplicaCache = openReplicaCache({
    maxBytes: config.ONCEWARD_CACHE_MIB * 1024 * 1024,
    redisUrl: () => withCurrentUrls(config).REDIS_URL,
    installationId: installation.id(),
    format: stored.entries,
    onSettled: (name) => waiters.wake(name),
    metrics: traced.metrics(metrics),
    log,
  });
  const waiters: Waiters = createWaiters({
    findResolved: (ids) => findResolved({ pool: pools.pool, shards }, ids),
    onCheckFailed: (error) =>
      log.warn({ err: error }, "reading the records of waiting calls failed; retrying at the next interval"),
    onFirstWaiter: (name) => cache.wakeChannel?.listen(name),
    onLastWaiterGone: (name) => cache.wakeChannel?.ignore(name),
    ...(tuning.waiterTickMs !== undefined && { checkEveryMs: tuning.waiterTickMs }),
  });
  const onSettled = (name: string) => {
    waiters.wake(name);
    cache.wakeChannel?.announce(name);
  };
  return { cache, waiters, onSettled };
}

interface CoreOptions extends Pick<CoreParts, "onSettled" | "replicaState"> {
  readonly liveReplicas: () => number;
  readonly onRefused: OnRefused;
  readonly denials: ReturnType<typeof createDenials>;
}

/** Builds who may call and how much, the records, and with them what features use. */
function composeCore(facts: Facts, { liveReplicas, denials, onRefused, ...options }: CoreOptions) {
  const { config, log, metrics, pools, pool, onFailed, tuning, traced, stored } = facts;
  const keyUse = createKeyUse({
    runner: pools.pool,
    intervalMs: config.ONCEWARD_USAGE_FLUSH,
    onFailed: onFailed("store_key_use"),
  });
  const totals = createStorageTotals({ pool: pools.pool, onFailed: onFailed("store_totals") });
  const admission = createAdmission({
    totals,
    liveReplicas,
    onRefused(tenantId, cause, mode, namespace) {
      metrics.refusedByQuota(tenantId, cause, mode);
      onRefused(tenantId, cause, mode, namespace);
    },
  });
  const authenticator = createAuthenticator(pool, {
    sessions: facts.page?.sessions,
    peppers: configuredPeppers(config),
    operatorKey: parseApiKey(config.ONCEWARD_OPERATOR_KEY ?? ""),
    tokens: facts.issuer?.tokens,
    anonymousTenant: facts.anonymousTenant,
    maxAgeMs: tuning.credentialAgeMs,
    onKeyUsed: keyUse.note,
  });
  const limiter = createTenantLimiter({
    weightOf: admission.weightOf,
    slotsPerTenant: config.ONCEWARD_TENANT_SHARE,
    observer: metrics,
  });
  const core: CoreParts = {
    ...options,
    config,
    log,
    metrics,
    onFailed,
    admission,
    authenticator,
    pool,
    tenantLabels: facts.tenantLabels,
    replica: facts.replica,
    administrationPool: traced.administrationPool(pools.administrationPool),
    tasks: { pool: pools.pool, administrationPool: pools.administrationPool },
    databaseClock: facts.databaseClock,
    values: stored.values,
    records: createRecordStore(pool, limiter, {
      values: stored.values,
      shards: facts.shards,
      databaseClock: facts.databaseClock,
      tokenFloor: facts.tokenFloor,
    }),
    pipeline: createPipeline({
      authenticator,
      admission,
      denials,
      log,
      metrics,
      defaultTimeoutMs: config.ONCEWARD_DEFAULT_TIMEOUT,
    }),
    installationId: facts.installation.id,
  };
  return { core, keyUse, totals };
}

/** Returns the unary RPCs of IdempotencyService. */
function idempotencyRoutes(
  { traced, log, metrics }: Facts,
  { config, records, admission, onSettled }: CoreParts,
  hooks: OperationHooks,
  { cache, waiters }: { readonly cache: ReplicaCache; readonly waiters: Waiters },
): readonly Route[] {
  const service = createIdempotencyService({
    records,
    admission,
    onSettled,
    replayCache: cache.replayCache,
    waiters: traced.waiters(waiters),
    onClaim: metrics.claimed,
    onOperation: createOperationLog({
      count: createOperationReport(metrics.operationEnded, hooks),
      log,
      recordTarget: createRecordTarget(config.ONCEWARD_API_KEY_PEPPER),
    }),
    usage: hooks,
  });
  const { tracing } = traced;
  return routesOf(
    IdempotencyService,
    "CALLER",
    tracing ? { ...service, batch: traceBatch(service.batch, tracing) } : service,
  );
}
