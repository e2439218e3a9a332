import { ANSWER_SETTINGS, type Runner } from "../../database/pool.ts";
import { whyPgBouncerSwitchIsMissing } from "../../database/pooler.ts";
import type { Check, Observation } from "../findings.ts";

const TIMEOUTS = ["statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"] as const;
const PLANNER = [
  "enable_seqscan",
  "enable_hashjoin",
  "enable_mergejoin",
  "enable_bitmapscan",
  "jit",
] as const;

/** Settings of Postgres that matter to the service, by name, in the unit of `pg_settings`. */
export type PostgresSettings = Readonly<Record<(typeof NAMES)[number], string>>;

const NAMES = [
  "server_version",
  "server_version_num",
  "in_hot_standby",
  "default_transaction_read_only",
  "fsync",
  "full_page_writes",
  "synchronous_commit",
  "synchronous_standby_names",
  "autovacuum",
  "deadlock_timeout",
  "max_connections",
  "superuser_reserved_connections",
  "reserved_connections",
  ...TIMEOUTS,
  ...PLANNER,
  ...(Object.keys(ANSWER_SETTINGS) as (keyof typeof ANSWER_SETTINGS)[]),
] as const;

const readSettings = {
  name: "read_postgres_settings",
  text: "select s.name, s.setting from pg_settings s where s.name = any ($1::text[])",
};

/** Reads the settings that are in force on the runner's connection. An unknown one is an empty text. */
export async function readPostgresSettings(runner: Runner): Promise<PostgresSettings> {
  const rows = await runner.run<{ name: string; setting: string }>(readSettings, [NAMES]);
  const found = new Map(rows.map(({ name, setting }) => [name, setting]));
  return Object.fromEntries(NAMES.map((name) => [name, found.get(name) ?? ""])) as PostgresSettings;
}

/** The oldest version that the tests run on. */
const OLDEST_VERSION_NUM = 150_000;
/** The newest minor version of each major that was known at the build: https://www.postgresql.org/support/versioning/. */
export const NEWEST_MINORS: Readonly<Record<number, number>> = { 15: 20, 16: 15, 17: 11, 18: 6 };
/** The sweep gives up a lock after 400 ms, so that it never meets the deadlock detector. */
const SHORTEST_DEADLOCK_TIMEOUT_MS = 500;

/** Compares Postgres' version and settings with what the guarantees rest on. */
export const postgresSettingsCheck: Check = {
  name: "postgres_settings",
  examine: async ({ runner }) => judgeSettings(await readPostgresSettings(runner)),
};

/** Returns what is wrong with the settings. */
export function judgeSettings(settings: PostgresSettings): readonly Observation[] {
  const major = Math.floor(Number(settings.server_version_num) / 10_000);
  const minor = Number(settings.server_version_num) % 10_000;
  const newestMinor = NEWEST_MINORS[major] ?? 0;
  const observations: readonly (Observation | false)[] = [
    Number(settings.server_version_num) < OLDEST_VERSION_NUM && {
      id: "postgres_version_unsupported",
      summary: `Postgres is version ${settings.server_version}; the oldest supported one is 15.`,
    },
    minor < newestMinor && {
      id: "postgres_minor_outdated",
      summary: `Postgres is version ${settings.server_version}; ${major}.${newestMinor} has been released.`,
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
    settings.synchronous_commit === "off" && {
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

/** Compares the pooler between the service and Postgres, if there is one, with the configuration. */
export const poolerCheck: Check = {
  name: "pooler",
  async examine({ config, runner, pooler }) {
    const missing = whyPgBouncerSwitchIsMissing(pooler, config);
    if (missing !== undefined) return [{ id: "pgbouncer_switch_missing", summary: missing }];
    const observations: Observation[] = [];
    if (config.ONCEWARD_PGBOUNCER && pooler.mode === "none") {
      observations.push({
        id: "pgbouncer_switch_needless",
        summary: "ONCEWARD_PGBOUNCER is true, and DATABASE_URL leads to Postgres itself.",
      });
    }
    if (pooler.mode === "transaction" && config.DATABASE_DIRECT_URL === undefined) {
      observations.push({
        id: "direct_url_missing",
        summary: "DATABASE_URL leads to a pooler in transaction mode, and DATABASE_DIRECT_URL is unset.",
      });
    }
    const unset = unsetSettings(await readPostgresSettings(runner));
    if (unset.length > 0) {
      observations.push({
        id: "session_settings_missing",
        summary: `The service's sessions lack the settings ${unset.join(", ")}.`,
      });
    }
    return observations;
  },
};

/** `initdb` takes them from the machine, and statements allow for any. The isolation has a finding of its own. */
const NOT_COMPARED = ["DateStyle", "TimeZone", "default_transaction_isolation"];

/** Returns the names of the settings that a session of the service needs and lacks. */
function unsetSettings(settings: PostgresSettings): readonly string[] {
  return [
    ...TIMEOUTS.filter((name) => Number(settings[name]) === 0),
    ...PLANNER.filter((name) => settings[name] !== "off"),
    ...(Object.keys(ANSWER_SETTINGS) as (keyof typeof ANSWER_SETTINGS)[]).filter(
      (name) => settings[name] !== ANSWER_SETTINGS[name] && !NOT_COMPARED.includes(name),
    ),
  ];
}
