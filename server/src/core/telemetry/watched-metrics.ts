import { Gauge, type Registry } from "prom-client";

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

interface WatchedGauge {
  readonly name: string;
  readonly help: string;
  /** Returns the value; with a label, the values by the label's value. */
  readonly read: () => number | Iterable<readonly [string, number]>;
  readonly label?: string;
}

/** Adds the gauges that are read from their source on every export. */
export function addWatchedGauges(registry: Registry, sources: WatchedSources): void {
  for (const { name, help, read, label } of watchedGauges(sources)) {
    new Gauge({
      name,
      help,
      labelNames: label === undefined ? [] : [label],
      registers: [registry],
      collect() {
        const value = read();
        if (typeof value === "number" || label === undefined) return this.set(Number(value));
        // Tenants' values end with their tenant.
        this.reset();
        for (const [labelValue, each] of value) this.set({ [label]: labelValue }, each);
      },
    });
  }
}

function watchedGauges(sources: WatchedSources): readonly WatchedGauge[] {
  return [
    {
      name: "onceward_replicas",
      help: "Live replicas, as known to this one; they share rate quotas.",
      read: sources.liveReplicas,
    },
    { name: "onceward_cache_bytes", help: "Memory of cached completions.", read: sources.cacheBytes },
    {
      name: "onceward_degraded",
      help: "1 while the replica is degraded, by reason; its responses stay correct.",
      label: "reason",
      read: () => Object.entries(sources.degraded()).map(([reason, is]) => [reason, is ? 1 : 0] as const),
    },
    {
      name: "onceward_database_clock_moved_seconds",
      help: "How far the database's clock is ahead of its earlier course; 0: it follows its course.",
      read: () => sources.databaseClockMovedMs() / 1000,
    },
    {
      name: "onceward_tls_expires_in_seconds",
      help: "Time until the earliest certificate in use expires, by file; negative if it has.",
      label: "certificate",
      read: sources.tlsExpiresInS,
    },
    {
      name: "onceward_waiters",
      help: "Claims that are waiting for a record to resolve.",
      read: sources.waiters,
    },
    {
      name: "onceward_pool_connections",
      help: "Connections to Postgres, by state, and statements that wait for one.",
      label: "state",
      read: () => {
        const { total, idle, waiting } = sources.pool();
        return Object.entries({ busy: total - idle, idle, awaited: waiting });
      },
    },
    {
      name: "onceward_calls_in_flight",
      help: "Calls that have arrived and are not answered yet; batches of a stream count one each.",
      read: sources.callsInFlight,
    },
    {
      name: "onceward_connections",
      help: "Open connections of clients, by port.",
      label: "port",
      read: () => Object.entries(sources.connections()),
    },
    {
      name: "onceward_ambiguous_records",
      help: "Ambiguous records of a tenant, as last counted; every replica exports the same value.",
      label: "tenant",
      read: sources.ambiguousRecords,
    },
  ];
}
