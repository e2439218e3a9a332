import type { Section } from "./dashboard.ts";
import { percentiles, REPLICAS, rateBy, sumRate } from "./queries.ts";

/** Panels of Batches. */
export const BATCHES: Section = {
  title: "Batches",
  panels: [
    {
      title: "Operations per statement",
      description: "Mean and 99th percentile of the operations that one statement carries.",
      unit: "short",
      queries: {
        "{{statement}} mean": `${rateBy("statement", "onceward_batch_size_sum")} / ${rateBy("statement", "onceward_batch_size_count")}`,
        "{{statement}} p99": `histogram_quantile(0.99, ${rateBy("le, statement", "onceward_batch_size_bucket")})`,
      },
    },
    {
      title: "Queued operations",
      description: "Operations that wait for the next statement.",
      unit: "short",
      queries: { "{{statement}}": `sum by (statement) (onceward_batch_queue_depth{${REPLICAS}})` },
    },
    {
      title: "Time in the queue",
      description: "From an operation's arrival in the queue to its statement.",
      unit: "s",
      queries: percentiles([50, 99], "onceward_batch_queue_wait_seconds", "statement"),
    },
  ],
};

/** Panels of Postgres. */
export const STORE: Section = {
  title: "Postgres",
  panels: [
    {
      title: "Statements",
      description: "Statements by name.",
      unit: "ops",
      queries: { "{{statement}}": rateBy("statement", "onceward_store_duration_seconds_count") },
    },
    {
      title: "Duration of statements",
      description: "99th percentile, including the wait for a connection.",
      unit: "s",
      queries: percentiles([99], "onceward_store_duration_seconds", "statement"),
    },
    {
      title: "Failures",
      description: "Failed statements and idle connections that broke.",
      unit: "ops",
      queries: {
        "{{statement}}": `${rateBy("statement", "onceward_store_errors_total")} > 0 or vector(0)`,
        "connections lost": sumRate("onceward_pool_connections_lost_total"),
      },
    },
  ],
};

/** Panels of Sweep and background tasks. */
export const BACKGROUND: Section = {
  title: "Sweep and background tasks",
  panels: [
    {
      title: "Lag of the sweep",
      description: "How long the most overdue record had been due at a replica's last sweep.",
      unit: "s",
      queries: { "{{instance}}": `onceward_sweep_lag_seconds{${REPLICAS}}` },
    },
    {
      title: "Swept and pruned",
      description:
        "Records that the sweep deleted or kept, records that jobs examined or changed, and pruned rows.",
      unit: "ops",
      queries: {
        "sweep {{action}}": rateBy("action", "onceward_sweep_records_total"),
        "job {{kind}} {{action}}": `${rateBy("kind, action", "onceward_record_job_records_total")} or vector(0)`,
        "pruned {{table}}": `${rateBy("table", "onceward_pruned_rows_total")} or vector(0)`,
        "unfinished jobs": `max(onceward_record_jobs_unfinished{${REPLICAS}})`,
      },
    },
    {
      title: "Unreadable records",
      description: "Reads of encrypted records that failed, by cause. Their keys are refused.",
      unit: "ops",
      queries: { "{{cause}}": rateBy("cause", "onceward_unreadable_records_total") },
    },
    {
      title: "Failures of background tasks",
      description: "Failed runs. Tasks are retried at their next interval.",
      unit: "ops",
      queries: {
        sweep: sumRate("onceward_sweep_errors_total"),
        "{{task}}": `${rateBy("task", "onceward_background_errors_total")} > 0 or vector(0)`,
      },
    },
  ],
};

/** Panels of Cache and waiters. */
export const CACHE: Section = {
  title: "Cache and waiters",
  panels: [
    {
      title: "Hits",
      description: "Share of lookups of completed records that found one, by layer.",
      unit: "percentunit",
      queries: {
        "{{layer}}": `${rateBy("layer", "onceward_cache_requests_total", `${REPLICAS},result="hit"`)} / ${rateBy("layer", "onceward_cache_requests_total")}`,
      },
    },
    {
      title: "Lookups",
      description: "Lookups of completed records by layer and result, and errors of Redis.",
      unit: "ops",
      queries: {
        "{{layer}} {{result}}": rateBy("layer, result", "onceward_cache_requests_total"),
        "errors of Redis": sumRate("onceward_redis_errors_total"),
      },
    },
    {
      title: "Memory of cached completions",
      description: "Bytes by replica, up to ONCEWARD_CACHE_MIB.",
      unit: "bytes",
      queries: { "{{instance}}": `onceward_cache_bytes{${REPLICAS}}` },
    },
    {
      title: "Waiters",
      description: "Claims that wait for a record to resolve.",
      unit: "short",
      queries: { "{{instance}}": `onceward_waiters{${REPLICAS}}` },
    },
  ],
};

/** Panels of HTTP proxies, which Prometheus scrapes under jobs of their own; without one, they show 0. */
export const HTTP_PROXIES: Section = {
  title: "HTTP proxies",
  panels: [
    {
      title: "Requests by ending",
      description:
        "Requests of all `onceward http-proxy` that are scraped, by how they ended: `unknown` leaves a claim to its policy, `unreachable` is a service that refuses connections.",
      unit: "ops",
      queries: {
        "{{ending}}":
          "sum by (ending) (rate(onceward_http_proxy_requests_total[$__rate_interval])) or vector(0)",
      },
    },
    {
      title: "Requests in flight",
      description: "Requests that have not ended, by proxy.",
      unit: "short",
      queries: { "{{instance}}": "sum by (instance) (onceward_http_proxy_requests_in_flight) or vector(0)" },
    },
  ],
};
