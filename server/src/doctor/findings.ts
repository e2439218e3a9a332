import type { Config } from "../config/config.ts";
import type { Runner } from "../database/pool.ts";
import type { Pooler } from "../database/pooler.ts";

/** How much a finding matters: an error breaks or endangers the service, a warning will, an info may be meant. */
export type Severity = "info" | "warning" | "error";

/** What the catalogue says about a kind of finding. */
interface FindingKind {
  readonly severity: Severity;
  /** What to do, in one or two sentences; the runbook has the rest. */
  readonly advice: string;
}

/**
 * Every kind of finding, by its id. Ids are stable: monitoring compares them. `deploy/runbook.md` has a
 * section for each.
 */
export const FINDINGS = {
  check_failed: {
    severity: "error",
    advice:
      "Remove the cause that the sentence names, such as by the advice of a finding above, and run doctor again: nothing is known of this subject.",
  },
  postgres_unreachable: {
    severity: "error",
    advice: "Check DATABASE_URL, the network and Postgres itself. Nothing else about Postgres was checked.",
  },
  engine_unsupported: {
    severity: "error",
    advice: "Move the data to PostgreSQL 15 or later: server/decisions/0017-other-engines.md.",
  },
  postgres_version_unsupported: {
    severity: "error",
    advice: "Upgrade Postgres to version 15 or later.",
  },
  postgres_minor_outdated: {
    severity: "info",
    advice:
      "Update Postgres to its newest minor version, which fixes security holes and loss of data, and keeps the files.",
  },
  schema_behind: { severity: "error", advice: "Run: onceward-server migrate" },
  schema_ahead: {
    severity: "info",
    advice: "Nothing, if an upgrade is under way: this server can use the newer schema.",
  },
  pepper_wrong: {
    severity: "error",
    advice:
      "Set ONCEWARD_API_KEY_PEPPER to the pepper that the installation's API keys were made with, and restart the replicas.",
  },
  second_pepper: {
    severity: "info",
    advice:
      "Continue the change of the pepper: before its second step, 0 is expected. In the last one, remove ONCEWARD_API_KEY_SECOND_PEPPER once no key needs it: each key is stored again when it is used.",
  },
  database_read_only: {
    severity: "error",
    advice: "Point DATABASE_URL at the primary, or promote this standby.",
  },
  writes_fail: {
    severity: "error",
    advice: "Free space if the disk is full (SQLSTATE 53100); else remove the cause that the sentence names.",
  },
  fsync_off: { severity: "error", advice: "Set fsync = on." },
  full_page_writes_off: { severity: "warning", advice: "Set full_page_writes = on." },
  synchronous_commit_off: {
    severity: "error",
    advice: "Set synchronous_commit = on for the server, the database and the service's role.",
  },
  autovacuum_off: { severity: "warning", advice: "Set autovacuum = on." },
  isolation_not_read_committed: {
    severity: "error",
    advice: "Reset default_transaction_isolation of the server, the database and the service's role.",
  },
  deadlock_timeout_short: { severity: "warning", advice: "Set deadlock_timeout to 1s, its default." },
  max_connections_exceeded: {
    severity: "error",
    advice: "Raise the limit, lower ONCEWARD_POOL_SIZE, run fewer replicas, or put PgBouncer in between.",
  },
  max_connections_tight: {
    severity: "warning",
    advice: "Raise the limit or lower ONCEWARD_POOL_SIZE before the next rolling update.",
  },
  pgbouncer_switch_missing: {
    severity: "error",
    advice: "Set ONCEWARD_PGBOUNCER=true, give the service's role its settings, and restart the replicas.",
  },
  pgbouncer_switch_needless: {
    severity: "info",
    advice: "Remove ONCEWARD_PGBOUNCER: kept plans make calls faster, and the role needs no settings.",
  },
  session_settings_missing: {
    severity: "error",
    advice:
      "Give the service's role in Postgres the settings that server/settings.md lists for PgBouncer, and reset the others that are named.",
  },
  direct_url_missing: {
    severity: "warning",
    advice: "Set DATABASE_DIRECT_URL to Postgres itself: migrations need a session of their own.",
  },
  records_unreadable: {
    severity: "error",
    advice:
      "Give every replica the same ONCEWARD_ENCRYPTION_KEYS, with the missing key from its backup. Calls that need the records fail meanwhile, and grant nothing.",
  },
  clock_skewed: {
    severity: "warning",
    advice:
      "Synchronise the machine's clock (NTP). Leases and retention are safe: they follow the database's.",
  },
  database_clock_moved: {
    severity: "error",
    advice:
      "Set the database's clock right (NTP) if it is wrong; if it is right again, wait an hour. Records whose retention ended only by it are kept, and not granted again.",
  },
  redis_unreachable: {
    severity: "warning",
    advice: "Check REDIS_URL and Redis. Calls are answered from memory and Postgres meanwhile.",
  },
  redis_not_master: {
    severity: "warning",
    advice: "Point REDIS_URL at the master, or at the sentinels: a replica refuses new entries.",
  },
  redis_evicts_nothing: { severity: "warning", advice: "Set maxmemory-policy allkeys-lru." },
  redis_memory_unlimited: { severity: "warning", advice: "Set maxmemory." },
  hot_share_low: {
    severity: "warning",
    advice: "Restore the table's fillfactor of 30, and end old transactions, which keep pages full.",
  },
  dead_rows_many: {
    severity: "warning",
    advice:
      "End old transactions and remove unused replication slots, then let autovacuum run, or run VACUUM.",
  },
  sweep_behind: {
    severity: "warning",
    advice:
      "Look at the log for failed sweeps and at the load of Postgres. No answer is wrong, the table grows.",
  },
  record_job_late: {
    severity: "warning",
    advice: "Look at the log for task record_jobs. A large namespace takes long: compare the job's progress.",
  },
  privilege_missing: {
    severity: "error",
    advice: "Run the grants of deploy/README.md, \"The database's roles\", as the tables' owner.",
  },
  audit_changeable: {
    severity: "info",
    advice: 'Run replicas as a role that owns nothing: deploy/README.md, "The database\'s roles".',
  },
  standby_missing: {
    severity: "info",
    advice:
      "Do nothing if the provider replicates the disk. Otherwise add a standby: a lost disk loses all records.",
  },
  standby_asynchronous: {
    severity: "warning",
    advice: "Set synchronous_standby_names, and synchronous_commit to on or above.",
  },
  synchronous_standby_missing: {
    severity: "error",
    advice: "Bring the standby back, or remove its name from synchronous_standby_names and reload.",
  },
  export_behind: {
    severity: "warning",
    advice:
      "Start onceward-server export-history with this slot, or drop the slot: pg_drop_replication_slot.",
  },
  citus_node_unreachable: {
    severity: "error",
    advice:
      "Start the node, or correct its address with citus_update_node. The keys of its shards get UNAVAILABLE.",
  },
  citus_clock_skewed: {
    severity: "error",
    advice: "Synchronise the clocks of all nodes (NTP): leases end by the clock of the key's node.",
  },
  citus_records_not_distributed: {
    severity: "warning",
    advice: "Run: onceward-server migrate --citus",
  },
  citus_functions_missing: {
    severity: "error",
    advice: "Run: onceward-server migrate --citus, then restart the replicas.",
  },
  citus_worker_settings_missing: {
    severity: "error",
    advice: "Run again: onceward-server migrate --citus",
  },
} as const satisfies Readonly<Record<string, FindingKind>>;

export type FindingId = keyof typeof FINDINGS;

/** What a check found, before the catalogue's part is added. */
export interface Observation {
  readonly id: FindingId;
  /** One sentence with the values that were found. */
  readonly summary: string;
}

/** What checks read from. */
export interface CheckContext {
  readonly config: Config;
  /** Runs statements, each bounded in time by the pool. */
  readonly runner: Runner;
  /** The pooler between this process and Postgres, if any. */
  readonly pooler: Pooler;
}

/** Examines one subject. */
export interface Check {
  /** The subject, such as `replica_clocks`. */
  readonly name: string;
  /** False: it is made also if Postgres is unreachable. */
  readonly needsPostgres?: false;
  /** Returns what is wrong; nothing if all is well. @throws any error: doctor reports it as a finding. */
  examine(context: CheckContext): Promise<readonly Observation[]>;
}

/** A finding, complete. */
export interface Finding extends Observation {
  readonly severity: Severity;
  readonly advice: string;
  /** The section about it, from the repository's root. */
  readonly runbook: string;
}

/** Adds the catalogue's part to an observation. */
export function findingOf({ id, summary }: Observation): Finding {
  return { id, summary, ...FINDINGS[id], runbook: `deploy/runbook.md#${id}` };
}
