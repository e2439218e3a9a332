import { createAdmission } from "../access/admission.ts";
import { parseApiKey } from "../access/api-key.ts";
import { Authenticator } from "../access/authenticate.ts";
import { configuredPeppers } from "../access/pepper.ts";
import { createStorageTotals } from "../access/storage-totals.ts";
import { createJobs } from "../admin/jobs/create-jobs.ts";
import { administrationRoutes } from "../admin/routes.ts";
import { createUsage } from "../admin/usage/create-usage.ts";
import { tenantMetricsRoute } from "../admin/usage/tenant-metrics.ts";
import { createDegradedStates } from "../background/degraded.ts";
import { createHeartbeat } from "../background/heartbeat.ts";
import { createKeyUse } from "../background/key-use.ts";
import { createSuspendWatch } from "../background/suspend-watch.ts";
import { withCurrentUrls } from "../config/config.ts";
import type { CoreParts, ForgetKeys } from "../core-parts.ts";
import { doctorRoutes } from "../doctor/doctor.ts";
import { createRecordTarget } from "../domain/record-target.ts";
import { IdempotencyService } from "../gen/onceward/v1/idempotency_pb.ts";
import { createInsight } from "../insight/create-insight.ts";
import { removeSamples } from "../insight/samples.ts";
import { createKeyHistory } from "../key-history/create-key-history.ts";
import { removeKeyHistories } from "../key-history/key-histories.ts";
import {
  createOperationLog,
  createOperationReport,
  joinHooks,
  type OperationHooks,
} from "../records/after-operation.ts";
import { findResolved } from "../records/claim/find-resolved.ts";
import { createWaiters, type Waiters } from "../records/claim/waiters.ts";
import { createTenantLimiter } from "../records/engine/fair-queue.ts";
import { createRecordStore } from "../records/record-store.ts";
import { openReplicaCache, type ReplicaCache } from "../records/replay/replica-cache.ts";
import { createIdempotencyService } from "../records/service.ts";
import { traceBatch } from "../tracing/traced-batch.ts";
import { createDenials, type Denials } from "../transport/denials.ts";
import { createManagementServer } from "../transport/management/server.ts";
import { createPipeline } from "../transport/pipeline.ts";
import { type Route, routesOf } from "../transport/route.ts";
import { createBackground } from "./background-tasks.ts";
import type { Facts } from "./connect.ts";
import { createCallersPorts } from "./ports.ts";
import { createLoadMeter, degradedConditions } from "./replica-state.ts";

/** The parts of a replica that are started and stopped. */
export type Replica = ReturnType<typeof compose>;

/**
 * Builds all parts of a replica from what was read, and connects them. Nothing runs yet.
 *
 * @param unreadyReasons returns why the replica must get no calls; none: it is ready.
 */
export function compose(facts: Facts, unreadyReasons: () => readonly string[]) {
  const { log, metrics, replica, pools, databaseClock, installation, tuning, tls, events } = facts;
  const { cache, waiters, onSettled } = composeWaiting(facts);
  const degraded = createDegradedStates({ log, lookMs: tuning.degradedLookMs });
  const heartbeat = createHeartbeat({
    pool: pools.heartbeatPool,
    replica,
    look: installation.look,
    databaseClock,
    tokenFloor: facts.tokenFloor,
    commits: facts.commits,
    onFailed: facts.onFailed("heartbeat"),
    intervalMs: tuning.heartbeatMs,
  });
  const denials = createDenials(pools.pool, log, tuning.denialWindowMs);
  const { core, keyUse, totals } = composeCore(facts, {
    liveReplicas: heartbeat.liveReplicas,
    denials,
    onSettled,
    replicaState: { id: replica.id, degraded: degraded.reasons, lastBeaten: heartbeat.lastBeaten },
  });
  const usage = createUsage(core);
  const insight = createInsight(core);
  const keyHistory = createKeyHistory(core);
  const jobs = createJobs(core);
  const hooks = joinHooks([usage.hooks, insight.hooks, keyHistory.hooks]);
  events.on("refusedByQuota", (tenantId, cause, mode, namespace) => {
    if (namespace !== undefined) hooks.limited({ tenantId, namespace }, cause, mode);
  });
  const ports = createCallersPorts(facts, {
    routes: [
      ...idempotencyRoutes(facts, core, hooks, { cache, waiters }),
      ...insight.routes,
      ...keyHistory.routes,
      ...administrationRoutes(core),
      ...doctorRoutes(core),
    ],
    tenantMetrics: tenantMetricsRoute(core),
    pipeline: facts.traced.pipeline(core.pipeline),
    console: facts.page?.createPage(core),
  });
  const management = createManagementServer({ metrics, unreadyReasons, tls, restMs: tuning.metricsRestMs });
  const load = createLoadMeter(facts, {
    callsInFlight: core.pipeline.callsInFlight,
    connections: () => ports.grpc.connections() + ports.http.connections(),
  });
  const background = createBackground({
    ...{ facts, core, heartbeat, keyUse, totals, usage, insight },
    tasks: jobs.tasks,
    flushes: [usage.flusher, insight.sampler, keyHistory.flusher],
    state: () => ({ degraded: degraded.reasons(), load: load() }),
  });
  const conditions = degradedConditions(facts, cache, heartbeat, background.sweepLateS);
  metrics.watch({
    pool: pools.pool.load,
    waiters: waiters.count,
    liveReplicas: heartbeat.liveReplicas,
    cacheBytes: cache.bytes,
    degraded: degraded.active,
    databaseClockMovedMs: databaseClock.movedMs,
    tlsExpiresInS: () => tls?.expiresInS() ?? new Map(),
    callsInFlight: core.pipeline.callsInFlight,
    connections: () => ({
      grpc: ports.grpc.connections(),
      http: ports.http.connections(),
      management: management.connections(),
    }),
    ambiguousRecords: jobs.ambiguousRecords,
  });
  const suspendWatch = watchCopies(facts, core, cache);
  return {
    ...{ ports, management, background, suspendWatch, waiters, cache, denials },
    degraded: { start: () => degraded.start(conditions), stop: degraded.stop },
  };
}

/** Drops what was read from the database when the installation changes, and after the machine was suspended. */
function watchCopies(
  { installation, log, events }: Facts,
  { authenticator }: CoreParts,
  cache: ReplicaCache,
) {
  function dropCopies(installationId: string): void {
    authenticator.databaseChanged();
    cache.moveTo(installationId);
  }
  events.on("installationChanged", dropCopies);
  return createSuspendWatch({
    onResumed(suspendedMs) {
      dropCopies(installation.id());
      log.warn({ suspendedMs: Math.round(suspendedMs) }, "the machine was suspended; caches are dropped");
    },
  });
}

/** Forgets what features have stored of a namespace's keys. */
const forgetKeys: ForgetKeys = async (...namespace) => {
  await removeSamples(...namespace);
  await removeKeyHistories(...namespace);
};

/** Builds the cache, whose channel wakes waiting calls, and the waiting calls, for which it listens. */
function composeWaiting(facts: Facts) {
  const { config, log, metrics, installation, stored, pools, shards, tuning, traced, events } = facts;
  const cache: ReplicaCache = openReplicaCache({
    maxBytes: config.ONCEWARD_CACHE_MIB * 1024 * 1024,
    redisUrl: () => withCurrentUrls(config).REDIS_URL,
    installationId: installation.id(),
    format: stored.entries,
    onSettled: (name) => void events.emit("settledElsewhere", name),
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
  events.on("settledElsewhere", waiters.wake);
  const onSettled = (name: string) => {
    waiters.wake(name);
    cache.wakeChannel?.announce(name);
  };
  return { cache, waiters, onSettled };
}

/** Builds who may call and how much, the records, and with them what features use. */
function composeCore(
  facts: Facts,
  {
    liveReplicas,
    denials,
    ...options
  }: Pick<CoreParts, "onSettled" | "replicaState"> & {
    readonly liveReplicas: () => number;
    readonly denials: Denials;
  },
) {
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
      facts.events.emit("refusedByQuota", tenantId, cause, mode, namespace);
    },
  });
  const authenticator = new Authenticator(pool, {
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
    ...facts,
    ...options,
    ...{ admission, authenticator, forgetKeys },
    administrationPool: traced.administrationPool(pools.administrationPool),
    tasks: pools,
    values: stored.values,
    records: createRecordStore(pool, limiter, {
      values: stored.values,
      shards: facts.shards,
      databaseClock: facts.databaseClock,
      tokenFloor: facts.tokenFloor,
      recordLoss: facts.recordLoss,
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
    tracing ? { ...service, batch: traceBatch(service.batch, tracing) } : service,
  );
}
