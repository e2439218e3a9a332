import type { Section } from "./dashboard.ts";
import { percentile, REPLICAS, rateBy } from "./queries.ts";

/** Panels of Batches. */
export const BATCHES: Section = {
  title: "Batches",
  panels: [
    {
      title: "Operations per statement",
      description: "Mean and 99th percentile of the operations that one statement carries.",
      unit: "short",
      queries: [
        {
          expr: `${rateBy("statement", "onceward_batch_size_sum")} / ${rateBy("statement", "onceward_batch_size_count")}`,
          legend: "{{statement}} mean",
        },
        {
          expr: `histogram_quantile(0.99, ${rateBy("le, statement", "onceward_batch_size_bucket")})`,
          legend: "{{statement}} p99",
        },
      ],
    },
    {
      title: "Queued operations",
      description: "Operations that wait for the next statement.",
      unit: "short",
      queries: [
        { expr: `sum by (statement) (onceward_batch_queue_depth{${REPLICAS}})`, legend: "{{statement}}" },
      ],
    },
    {
      title: "Time in the queue",
      description: "From an operation's arrival in the queue to its statement.",
      unit: "s",
      queries: [50, 99].map((percent) =>
        percentile(percent, "onceward_batch_queue_wait_seconds", "statement"),
      ),
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
      queries: [
        { expr: rateBy("statement", "onceward_store_duration_seconds_count"), legend: "{{statement}}" },
      ],
    },
    {
      title: "Duration of statements",
      description: "99th percentile, including the wait for a connection.",
      unit: "s",
      queries: [percentile(99, "onceward_store_duration_seconds", "statement")],
    },
    {
      title: "Failures",
      description: "Failed statements and idle connections that broke.",
      unit: "ops",
      queries: [
        {
          expr: `${rateBy("statement", "onceward_store_errors_total")} > 0 or vector(0)`,
          legend: "{{statement}}",
        },
        {
          expr: `sum(rate(onceward_pool_connections_lost_total{${REPLICAS}}[$__rate_interval]))`,
          legend: "connections lost",
        },
      ],
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
      queries: [{ expr: `onceward_sweep_lag_seconds{${REPLICAS}}`, legend: "{{instance}}" }],
    },
    {
      title: "Swept and pruned",
      description:
        "Records that the sweep deleted or kept, records that jobs examined or changed, and pruned rows.",
      unit: "ops",
      queries: [
        { expr: rateBy("action", "onceward_sweep_records_total"), legend: "sweep {{action}}" },
        {
          expr: `${rateBy("kind, action", "onceward_record_job_records_total")} or vector(0)`,
          legend: "job {{kind}} {{action}}",
        },
        { expr: `${rateBy("table", "onceward_pruned_rows_total")} or vector(0)`, legend: "pruned {{table}}" },
        { expr: `max(onceward_record_jobs_unfinished{${REPLICAS}})`, legend: "unfinished jobs" },
      ],
    },
    {
      title: "Unreadable records",
      description: "Reads of encrypted records that failed, by cause. Their keys are refused.",
      unit: "ops",
      queries: [{ expr: rateBy("cause", "onceward_unreadable_records_total"), legend: "{{cause}}" }],
    },
    {
      title: "Failures of background tasks",
      description: "Failed runs. Tasks are retried at their next interval.",
      unit: "ops",
      queries: [
        { expr: `sum(rate(onceward_sweep_errors_total{${REPLICAS}}[$__rate_interval]))`, legend: "sweep" },
        {
          expr: `${rateBy("task", "onceward_background_errors_total")} > 0 or vector(0)`,
          legend: "{{task}}",
        },
      ],
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
      queries: [
        {
          expr: `${rateBy("layer", "onceward_cache_requests_total", `${REPLICAS},result="hit"`)} / ${rateBy("layer", "onceward_cache_requests_total")}`,
          legend: "{{layer}}",
        },
      ],
    },
    {
      title: "Lookups",
      description: "Lookups of completed records by layer and result, and errors of Redis.",
      unit: "ops",
      queries: [
        { expr: rateBy("layer, result", "onceward_cache_requests_total"), legend: "{{layer}} {{result}}" },
        {
          expr: `sum(rate(onceward_redis_errors_total{${REPLICAS}}[$__rate_interval]))`,
          legend: "errors of Redis",
        },
      ],
    },
    {
      title: "Memory of cached completions",
      description: "Bytes by replica, up to ONCEWARD_CACHE_MIB.",
      unit: "bytes",
      queries: [{ expr: `onceward_cache_bytes{${REPLICAS}}`, legend: "{{instance}}" }],
    },
    {
      title: "Waiters",
      description: "Claims that wait for a record to resolve.",
      unit: "short",
      queries: [{ expr: `onceward_waiters{${REPLICAS}}`, legend: "{{instance}}" }],
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
      queries: [
        {
          expr: "sum by (ending) (rate(onceward_http_proxy_requests_total[$__rate_interval])) or vector(0)",
          legend: "{{ending}}",
        },
      ],
    },
    {
      title: "Requests in flight",
      description: "Requests that have not ended, by proxy.",
      unit: "short",
      queries: [
        {
          expr: "sum by (instance) (onceward_http_proxy_requests_in_flight) or vector(0)",
          legend: "{{instance}}",
        },
      ],
    },
  ],
};
