import type { Registry } from "prom-client";
import { metricsOf } from "./background-metrics.ts";

/** Sources of the metrics that are read on every export. */
export interface WatchedSources {
  readonly pool: () => { readonly total: number; readonly idle: number; readonly waiting: number };
  readonly waiters: () => number;
  readonly liveReplicas: () => number;
  /** Memory of cached completions, in bytes. */
  readonly cacheBytes: () => number;
  /** Whether the service is degraded, by reason. */
  readonly degraded: () => Readonly<Record<string, boolean>>;
  /** As DatabaseClockWatch.movedMs. */
  readonly databaseClockMovedMs: () => number;
  /** As Tls.expiresInS; empty without TLS. */
  readonly tlsExpiresInS: () => ReadonlyMap<string, number>;
  /** Calls whose headers have arrived and that are not answered yet. */
  readonly callsInFlight: () => number;
  /** Open connections, by port. */
  readonly connections: () => Readonly<Record<string, number>>;
  /** Ambiguous records, by the tenant's label. */
  readonly ambiguousRecords: () => ReadonlyMap<string, number>;
}

/** Adds the gauges that are read from their source on every export. */
export function addWatchedGauges(registry: Registry, sources: WatchedSources): void {
  const { watchedGauge } = metricsOf(registry);
  watchedGauge(
    "onceward_replicas",
    "Live replicas, as known to this one; they share rate quotas.",
    sources.liveReplicas,
  );
  watchedGauge("onceward_cache_bytes", "Memory of cached completions.", sources.cacheBytes);
  watchedGauge(
    "onceward_degraded",
    "1 while the replica is degraded, by reason; its responses stay correct.",
    () => Object.entries(sources.degraded()).map(([reason, is]) => [reason, is ? 1 : 0] as const),
    "reason",
  );
  watchedGauge(
    "onceward_database_clock_moved_seconds",
    "How far the database's clock is ahead of the previous clock; 0: it was not set.",
    () => sources.databaseClockMovedMs() / 1000,
  );
  watchedGauge(
    "onceward_tls_expires_in_seconds",
    "Time until the earliest certificate in use expires, by file; negative if it has.",
    sources.tlsExpiresInS,
    "certificate",
  );
  watchedGauge("onceward_waiters", "Claims that are waiting for a record to resolve.", sources.waiters);
  watchedGauge(
    "onceward_pool_connections",
    "Connections to Postgres, by state, and statements that wait for one.",
    () => {
      const { total, idle, waiting } = sources.pool();
      return Object.entries({ busy: total - idle, idle, awaited: waiting });
    },
    "state",
  );
  watchedGauge(
    "onceward_calls_in_flight",
    "Calls that have arrived and are not answered yet; batches of a stream count one each.",
    sources.callsInFlight,
  );
  watchedGauge(
    "onceward_connections",
    "Open connections of clients, by port.",
    () => Object.entries(sources.connections()),
    "port",
  );
  watchedGauge(
    "onceward_ambiguous_records",
    "Ambiguous records of a tenant, as last counted; every replica exports the same value.",
    sources.ambiguousRecords,
    "tenant",
  );
}
