import { whyPgBouncerSwitchIsMissing } from "../../../core/store/pooler.ts";
import type { Check } from "../check.ts";
import { type PostgresSettings, readPostgresSettings } from "../facts/settings.ts";
import type { Observation } from "../findings.ts";

/** Compares the pooler between the service and Postgres, if there is one, with the configuration. */
export const poolerCheck: Check = {
  name: "pooler",
  needsPostgres: true,
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

const TIMEOUTS = ["statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"] as const;
const PLANNER = [
  "enable_seqscan",
  "enable_hashjoin",
  "enable_mergejoin",
  "enable_bitmapscan",
  "jit",
] as const;

/** Returns the names of the settings that a session of the service needs and lacks. */
export function unsetSettings(settings: PostgresSettings): readonly string[] {
  return [
    ...TIMEOUTS.filter((name) => Number(settings[name]) === 0),
    ...PLANNER.filter((name) => settings[name] !== "off"),
  ];
}
