import type { Addresses } from "../../../server/src/replica/server.ts";
import { readMetricsText } from "../servers/metrics.ts";

/** The statements that a replica repeats in the background. */
const BACKGROUND = new Set([
  "beat_replica",
  "read_node_clock",
  "store_key_use",
  "read_labelled_tenants",
  "find_holding_tenants",
  "find_marked_loss",
  "count_matching_ambiguous",
  "take_due_count",
  "count_page",
  "read_database_size",
  "store_count",
  "add_to_totals",
  "add_usage",
  "store_recent_use",
  "store_key_histories",
  "take_record_job",
  // A sweep.
  "find_due_records",
  "delete_ended_records",
  "delete_overdue_records",
  "put_off_records",
  "prune_audit_events",
  "prune_usage_hours",
  "prune_record_jobs",
  "prune_console_sessions",
  "prune_insight_hours",
  "prune_insight_late_hours",
  "prune_insight_key_days",
  "prune_insight_sampled_keys",
  "add_sampled_keys",
  "thin_sample",
  "purge_sampled_keys",
  "remove_sampled_keys",
  "read_changed_samples",
  "count_late_repeats",
  "count_record_jobs",
  // Background work after an administrator's change.
  "advance_record_job",
  "limit_locks",
  "find_next_namespace",
  "restamp_records",
  "forget_records",
  "remove_records",
  "remove_tenant",
  "lock_deleted_tenant",
  "remove_tenant_usage_hours",
  "remove_tenant_insight_hours",
  "remove_tenant_insight_late_hours",
  "remove_tenant_insight_key_days",
  "remove_tenant_insight_sample_shifts",
  "remove_tenant_insight_sampled_keys",
  "remove_samples",
  "remove_tenant_namespaces",
  "remove_tenant_console_sessions",
  "remove_tenant_api_keys",
  "raise_cache_generation",
  "select_installation",
  "raise_token_floor",
  "mark_installation",
  // Where the shards of a Citus are.
  "find_citus",
  "read_shards",
  "find_shard_guard",
  "check_node",
]);

/** The number of statements by name, without unused names and the statements of background tasks. */
export type StatementCounts = Readonly<Record<string, number>>;

/** Counts the statements that a server sent to Postgres, from now on. */
export async function countStatements(server: Addresses): Promise<{
  /** Returns the statements since the last call, the first time since the counting began. */
  next(): Promise<StatementCounts>;
}> {
  let before = await readCounts(server);
  return {
    async next() {
      const after = await readCounts(server);
      const grown = [...after].map(([name, count]) => [name, count - (before.get(name) ?? 0)] as const);
      before = after;
      return Object.fromEntries(grown.filter(([name, count]) => count > 0 && !BACKGROUND.has(name)));
    },
  };
}

/** Returns the number of statements that a server sent to Postgres during some work. */
export async function statementsDuring(
  server: Addresses,
  work: () => Promise<unknown>,
): Promise<StatementCounts> {
  const statements = await countStatements(server);
  await work();
  return statements.next();
}

const COUNT = /^onceward_store_duration_seconds_count\{statement="(\w+)"\} (\d+)$/gm;

/** Searches the text for its few lines: `readMetrics` would parse thousands, and some tests count hundreds of times. */
async function readCounts(server: Addresses): Promise<ReadonlyMap<string, number>> {
  const text = await readMetricsText(server);
  return new Map([...text.matchAll(COUNT)].map(([, name = "", count]) => [name, Number(count)]));
}
