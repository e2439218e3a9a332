import type { Section } from "./dashboard.ts";
import { percentiles, REPLICAS, rateBy, sumRate } from "./queries.ts";

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
      isInstant: true,
      queries: { "{{sli}}": '1 - avg_over_time(job_sli:onceward_failed:ratio_rate5m{job="$job"}[30d])' },
    },
    {
      kind: "figure",
      isLarge: true,
      title: "Claims a second",
      description: "Answered claims.",
      unit: "short",
      queries: { claims: sumRate("onceward_claims_total") },
    },
    {
      title: "Operations completed ÷ deliveries seen",
      description:
        "Completions of operations ÷ answered claims, in 5 minutes. 1: each delivery was a new operation, and was completed. Less: duplicates, and operations that are not completed. Each claim counts as a delivery, also one that is repeated because another holder has the key.",
      unit: "percentunit",
      queries: {
        "completed ÷ seen": `sum(rate(onceward_operations_total{${REPLICAS},kind="complete",outcome="completed"}[5m])) / sum(rate(onceward_claims_total{${REPLICAS}}[5m]))`,
      },
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
      queries: { "{{sli}}": 'job_sli:onceward_failed:ratio_rate1h{job="$job"} / 0.001' },
    },
    {
      kind: "figure",
      title: "Slow claims: burn rate, 1 h",
      description: "1: at this rate the budget of slow claims of 30 days lasts 30 days.",
      unit: "short",
      redFrom: 1,
      queries: { "claims over 64 ms": 'job:onceward_claims_slow:ratio_rate1h{job="$job"} / 0.01' },
    },
    {
      kind: "figure",
      title: "Replicas scraped",
      description: "Replicas whose metrics Prometheus reads.",
      unit: "short",
      queries: { replicas: `count(onceward_build_info{${REPLICAS}})` },
    },
    {
      kind: "figure",
      title: "Replicas alive",
      description: "Replicas with a heartbeat in the database within 10 s, as known to the replicas.",
      unit: "short",
      queries: { replicas: `max(onceward_replicas{${REPLICAS}})` },
    },
    {
      kind: "figure",
      title: "Versions",
      description: "Replicas by version.",
      unit: "short",
      queries: { "{{version}}": `count by (version) (onceward_build_info{${REPLICAS}})` },
    },
    {
      kind: "figure",
      title: "Database restored",
      description: "Restores and promotions that the replicas noticed in the last 24 h; each replica counts.",
      unit: "short",
      redFrom: 1,
      queries: { noticed: `sum(increase(onceward_installation_changes_total{${REPLICAS}}[24h]))` },
    },
    {
      title: "Degraded replicas",
      description: "Replicas in each degraded state. The runbook has an entry for each.",
      unit: "short",
      queries: { "{{reason}}": `sum by (reason) (onceward_degraded{${REPLICAS}})` },
    },
    {
      title: "Errors: burn rate by window",
      description:
        "Share of failed operations and calls ÷ 0.001. Alerts: 14.4 (1h and 5m), 6 (6h and 30m), 1 (3d and 6h).",
      unit: "short",
      queries: Object.fromEntries(
        WINDOWS.map((window) => [
          `{{sli}} ${window}`,
          `job_sli:onceward_failed:ratio_rate${window}{job="$job"} / 0.001`,
        ]),
      ),
    },
    {
      title: "Slow claims: burn rate by window",
      description:
        "Share of claims that took longer than 64 ms, without their wait, ÷ 0.01. Alerts as for errors.",
      unit: "short",
      queries: Object.fromEntries(
        WINDOWS.map((window) => [window, `job:onceward_claims_slow:ratio_rate${window}{job="$job"} / 0.01`]),
      ),
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
      queries: { "{{method}}": rateBy("method", "onceward_rpc_duration_seconds_count") },
    },
    {
      title: "Failed calls",
      description:
        "Calls with another code than OK, by method and code. Many are the caller's: see the code.",
      unit: "reqps",
      queries: {
        "{{method}} {{code}}": rateBy(
          "method, code",
          "onceward_rpc_duration_seconds_count",
          `${REPLICAS},code!="OK"`,
        ),
      },
    },
    {
      title: "Duration of calls",
      description:
        "From a call's headers to its reply. A claim that waits for another holder includes its wait.",
      unit: "s",
      queries: percentiles([50, 99], "onceward_rpc_duration_seconds", "method"),
    },
    {
      title: "Operations",
      description: "Operations by kind and outcome; each operation of a batch counts.",
      unit: "ops",
      queries: { "{{kind}} {{outcome}}": rateBy("kind, outcome", "onceward_operations_total") },
    },
    {
      title: "Duration of operations",
      description:
        "From an operation's message to its first outcome, by kind; the wait of a claim is not included.",
      unit: "s",
      queries: percentiles([50, 99], "onceward_operation_duration_seconds", "kind"),
    },
    {
      title: "In flight",
      description: "Calls that are not answered yet, and connections by port.",
      unit: "short",
      queries: {
        calls: `sum(onceward_calls_in_flight{${REPLICAS}})`,
        "connections {{port}}": `sum by (port) (onceward_connections{${REPLICAS}})`,
      },
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
      queries: { "{{state}}": `sum by (state) (onceward_pool_connections{${REPLICAS}})` },
    },
    {
      title: "Event loop lag",
      description:
        "99th percentile and maximum of the delay of timers, by replica. Above 50 ms the processor is too busy.",
      unit: "s",
      queries: {
        "{{instance}} p99": `nodejs_eventloop_lag_p99_seconds{${REPLICAS}}`,
        "{{instance}} max": `nodejs_eventloop_lag_max_seconds{${REPLICAS}}`,
      },
    },
    {
      title: "Processor",
      description: "Processor seconds per second, by replica. JavaScript runs on one processor.",
      unit: "percentunit",
      queries: { "{{instance}}": rateBy("instance", "process_cpu_seconds_total") },
    },
    {
      title: "Memory",
      description: "Resident memory and V8's heap in use, by replica.",
      unit: "bytes",
      queries: {
        "{{instance}} resident": `process_resident_memory_bytes{${REPLICAS}}`,
        "{{instance}} heap": `nodejs_heap_size_used_bytes{${REPLICAS}}`,
      },
    },
    {
      title: "Dropped after their deadline",
      description: "Operations whose deadline passed before they were sent to Postgres.",
      unit: "ops",
      queries: { dropped: sumRate("onceward_deadline_drops_total") },
    },
    {
      title: "Garbage collection",
      description: "Seconds of garbage collection per second, by kind.",
      unit: "percentunit",
      queries: { "{{kind}}": rateBy("kind", "nodejs_gc_duration_seconds_sum") },
    },
  ],
};
