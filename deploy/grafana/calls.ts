import type { Section } from "./dashboard.ts";
import { percentile, REPLICAS, rateBy } from "./queries.ts";

/** Windows of the recorded burn rates. */
const WINDOWS = ["5m", "30m", "1h", "6h", "3d"];

/** Panels of what callers get. */
export const SERVICE: Section = {
  title: "What callers get",
  panels: [
    {
      kind: "figure",
      isLarge: true,
      title: "Availability, last 30 days",
      description:
        "Share of operations and calls that the service did not fail, as an average over the time with calls.",
      unit: "percentunit",
      redBelow: 0.999,
      queries: [
        {
          expr: '1 - avg_over_time(job_sli:onceward_failed:ratio_rate5m{job="$job"}[30d])',
          legend: "{{sli}}",
          isInstant: true,
        },
      ],
    },
    {
      kind: "figure",
      isLarge: true,
      title: "Claims a second",
      description: "Answered claims.",
      unit: "short",
      queries: [
        { expr: `sum(rate(onceward_claims_total{${REPLICAS}}[$__rate_interval]))`, legend: "claims" },
      ],
    },
    {
      title: "Operations completed ÷ deliveries seen",
      description:
        "Completions of operations ÷ answered claims, in 5 minutes. 1: each delivery was a new operation, and was completed. Less: duplicates, and operations that are not completed. Each claim counts as a delivery, also one that is repeated because another holder has the key.",
      unit: "percentunit",
      queries: [
        {
          expr: `sum(rate(onceward_operations_total{${REPLICAS},kind="complete",outcome="completed"}[5m])) / sum(rate(onceward_claims_total{${REPLICAS}}[5m]))`,
          legend: "completed ÷ seen",
        },
      ],
    },
  ],
};

/** Panels of the service levels, and of the state of the replicas. */
export const SERVICE_LEVELS: Section = {
  title: "Service levels and state",
  panels: [
    {
      kind: "figure",
      title: "Errors: burn rate, 1 h",
      description: "1: at this rate the budget of errors of 30 days lasts 30 days.",
      unit: "short",
      redFrom: 1,
      queries: [{ expr: 'job_sli:onceward_failed:ratio_rate1h{job="$job"} / 0.001', legend: "{{sli}}" }],
    },
    {
      kind: "figure",
      title: "Slow claims: burn rate, 1 h",
      description: "1: at this rate the budget of slow claims of 30 days lasts 30 days.",
      unit: "short",
      redFrom: 1,
      queries: [
        { expr: 'job:onceward_claims_slow:ratio_rate1h{job="$job"} / 0.01', legend: "claims over 64 ms" },
      ],
    },
    {
      kind: "figure",
      title: "Replicas scraped",
      description: "Replicas whose metrics Prometheus reads.",
      unit: "short",
      queries: [{ expr: `count(onceward_build_info{${REPLICAS}})`, legend: "replicas" }],
    },
    {
      kind: "figure",
      title: "Replicas alive",
      description: "Replicas with a heartbeat in the database within 10 s, as known to the replicas.",
      unit: "short",
      queries: [{ expr: `max(onceward_replicas{${REPLICAS}})`, legend: "replicas" }],
    },
    {
      kind: "figure",
      title: "Versions",
      description: "Replicas by version.",
      unit: "short",
      queries: [{ expr: `count by (version) (onceward_build_info{${REPLICAS}})`, legend: "{{version}}" }],
    },
    {
      kind: "figure",
      title: "Database restored",
      description: "Restores and promotions that the replicas noticed in the last 24 h; each replica counts.",
      unit: "short",
      redFrom: 1,
      queries: [
        { expr: `sum(increase(onceward_installation_changes_total{${REPLICAS}}[24h]))`, legend: "noticed" },
      ],
    },
    {
      title: "Degraded replicas",
      description: "Replicas in each degraded state. The runbook has an entry for each.",
      unit: "short",
      queries: [{ expr: `sum by (reason) (onceward_degraded{${REPLICAS}})`, legend: "{{reason}}" }],
    },
    {
      title: "Errors: burn rate by window",
      description:
        "Share of failed operations and calls ÷ 0.001. Alerts: 14.4 (1h and 5m), 6 (6h and 30m), 1 (3d and 6h).",
      unit: "short",
      queries: WINDOWS.map((window) => ({
        expr: `job_sli:onceward_failed:ratio_rate${window}{job="$job"} / 0.001`,
        legend: `{{sli}} ${window}`,
      })),
    },
    {
      title: "Slow claims: burn rate by window",
      description:
        "Share of claims that took longer than 64 ms, without their wait, ÷ 0.01. Alerts as for errors.",
      unit: "short",
      queries: WINDOWS.map((window) => ({
        expr: `job:onceward_claims_slow:ratio_rate${window}{job="$job"} / 0.01`,
        legend: window,
      })),
    },
  ],
};

/** Panels of Calls. */
export const CALLS: Section = {
  title: "Calls",
  panels: [
    {
      title: "Calls",
      description: "Answered calls by method.",
      unit: "reqps",
      queries: [{ expr: rateBy("method", "onceward_rpc_duration_seconds_count"), legend: "{{method}}" }],
    },
    {
      title: "Failed calls",
      description:
        "Calls with another code than OK, by method and code. Many are the caller's: see the code.",
      unit: "reqps",
      queries: [
        {
          expr: rateBy("method, code", "onceward_rpc_duration_seconds_count", `${REPLICAS},code!="OK"`),
          legend: "{{method}} {{code}}",
        },
      ],
    },
    {
      title: "Duration of calls",
      description:
        "From a call's headers to its reply. A claim that waits for another holder includes its wait.",
      unit: "s",
      queries: [50, 99].map((percent) => percentile(percent, "onceward_rpc_duration_seconds", "method")),
    },
    {
      title: "Operations",
      description: "Operations by kind and outcome; each operation of a batch counts.",
      unit: "ops",
      queries: [
        { expr: rateBy("kind, outcome", "onceward_operations_total"), legend: "{{kind}} {{outcome}}" },
      ],
    },
    {
      title: "Duration of operations",
      description:
        "From an operation's message to its first outcome, by kind; the wait of a claim is not included.",
      unit: "s",
      queries: [50, 99].map((percent) => percentile(percent, "onceward_operation_duration_seconds", "kind")),
    },
    {
      title: "In flight",
      description: "Calls that are not answered yet, and connections by port.",
      unit: "short",
      queries: [
        { expr: `sum(onceward_calls_in_flight{${REPLICAS}})`, legend: "calls" },
        { expr: `sum by (port) (onceward_connections{${REPLICAS}})`, legend: "connections {{port}}" },
      ],
    },
  ],
};

/** Panels of Saturation. */
export const SATURATION: Section = {
  title: "Saturation",
  panels: [
    {
      title: "Connections to Postgres",
      description: "Connections for calls by state, and calls that wait for one (awaited).",
      unit: "short",
      queries: [{ expr: `sum by (state) (onceward_pool_connections{${REPLICAS}})`, legend: "{{state}}" }],
    },
    {
      title: "Event loop lag",
      description:
        "99th percentile and maximum of the delay of timers, by replica. Above 50 ms the processor is too busy.",
      unit: "s",
      queries: [
        { expr: `nodejs_eventloop_lag_p99_seconds{${REPLICAS}}`, legend: "{{instance}} p99" },
        { expr: `nodejs_eventloop_lag_max_seconds{${REPLICAS}}`, legend: "{{instance}} max" },
      ],
    },
    {
      title: "Processor",
      description: "Processor seconds per second, by replica. JavaScript runs on one processor.",
      unit: "percentunit",
      queries: [{ expr: rateBy("instance", "process_cpu_seconds_total"), legend: "{{instance}}" }],
    },
    {
      title: "Memory",
      description: "Resident memory and V8's heap in use, by replica.",
      unit: "bytes",
      queries: [
        { expr: `process_resident_memory_bytes{${REPLICAS}}`, legend: "{{instance}} resident" },
        { expr: `nodejs_heap_size_used_bytes{${REPLICAS}}`, legend: "{{instance}} heap" },
      ],
    },
    {
      title: "Dropped after their deadline",
      description: "Operations whose deadline passed before they were sent to Postgres.",
      unit: "ops",
      queries: [
        {
          expr: `sum(rate(onceward_deadline_drops_total{${REPLICAS}}[$__rate_interval]))`,
          legend: "dropped",
        },
      ],
    },
    {
      title: "Garbage collection",
      description: "Seconds of garbage collection per second, by kind.",
      unit: "percentunit",
      queries: [{ expr: rateBy("kind", "nodejs_gc_duration_seconds_sum"), legend: "{{kind}}" }],
    },
  ],
};
