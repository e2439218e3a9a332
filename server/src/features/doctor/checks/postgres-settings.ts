import type { Check } from "../check.ts";
import { type PostgresSettings, readPostgresSettings } from "../facts/settings.ts";
import type { Observation } from "../findings.ts";

/** The oldest version that the tests run on. */
const OLDEST_VERSION_NUM = 150_000;
/** The sweep gives up a lock after 400 ms, so that it never meets the deadlock detector. */
const SHORTEST_DEADLOCK_TIMEOUT_MS = 500;
/** A commit with one of these is acknowledged before it is on this machine's disk, or may be. */
const UNSAFE_COMMITS = ["off"];

/** Compares Postgres' version and settings with what the guarantees rest on. */
export const postgresSettingsCheck: Check = {
  name: "postgres_settings",
  needsPostgres: true,
  examine: async ({ runner }) => judgeSettings(await readPostgresSettings(runner)),
};

/** Returns what is wrong with the settings. */
export function judgeSettings(settings: PostgresSettings): readonly Observation[] {
  const observations: readonly (Observation | false)[] = [
    Number(settings.server_version_num) < OLDEST_VERSION_NUM && {
      id: "postgres_version_unsupported",
      summary: `Postgres is version ${settings.server_version}; the oldest supported one is 15.`,
    },
    (settings.in_hot_standby === "on" || settings.default_transaction_read_only === "on") && {
      id: "database_read_only",
      summary:
        settings.in_hot_standby === "on"
          ? "The database is a standby, which accepts no writes."
          : "default_transaction_read_only is on: the database accepts no writes.",
    },
    settings.fsync === "off" && {
      id: "fsync_off",
      summary: "fsync is off: a crash of the machine can lose or corrupt everything.",
    },
    settings.full_page_writes === "off" && {
      id: "full_page_writes_off",
      summary: "full_page_writes is off: a crash of the machine can leave pages that are half written.",
    },
    UNSAFE_COMMITS.includes(settings.synchronous_commit) && {
      id: "synchronous_commit_off",
      summary: "synchronous_commit is off: a crash loses claims and results that were acknowledged.",
    },
    settings.autovacuum === "off" && {
      id: "autovacuum_off",
      summary: "autovacuum is off: tables grow, and transaction ids run out.",
    },
    settings.default_transaction_isolation !== "read committed" && {
      id: "isolation_not_read_committed",
      summary: `default_transaction_isolation is ${settings.default_transaction_isolation}: concurrent claims fail.`,
    },
    Number(settings.deadlock_timeout) < SHORTEST_DEADLOCK_TIMEOUT_MS && {
      id: "deadlock_timeout_short",
      summary: `deadlock_timeout is ${settings.deadlock_timeout} ms: a sweep can make a claim fail.`,
    },
  ];
  return observations.filter((observation) => observation !== false);
}
