import type { Config } from "../config/config.ts";
import { openPool, type Pool, type Runner } from "../database/pool.ts";
import { type Pooler, probePooler, whyPgBouncerSwitchIsMissing } from "../database/pooler.ts";
import { backlogCheck } from "./checks/backlog.ts";
import { citusCheck } from "./checks/citus.ts";
import { clocksCheck } from "./checks/clocks.ts";
import { connectionsCheck } from "./checks/connections.ts";
import { encryptionKeysCheck } from "./checks/encryption.ts";
import { exportsCheck } from "./checks/exports.ts";
import { privilegesCheck } from "./checks/privileges.ts";
import { redisCheck } from "./checks/redis.ts";
import { engineCheck, pepperCheck, schemaCheck } from "./checks/schema.ts";
import { poolerCheck, postgresSettingsCheck } from "./checks/settings.ts";
import { standbysCheck } from "./checks/standbys.ts";
import { tablesCheck } from "./checks/tables.ts";
import { writesCheck } from "./checks/writes.ts";
import {
  type Check,
  type CheckContext,
  type Finding,
  findingOf,
  type Observation,
  type Severity,
} from "./findings.ts";

/** What doctor found. */
export interface Diagnosis {
  /** The most severe first. */
  readonly findings: readonly Finding[];
  /** The names of the checks that found nothing. */
  readonly passed: readonly string[];
  /** The names of the checks that were skipped, because Postgres is unreachable. */
  readonly skipped: readonly string[];
}

/** All checks, in the order in which a problem of one explains a problem of a later one. */
const CHECKS: readonly Check[] = [
  engineCheck,
  schemaCheck,
  postgresSettingsCheck,
  privilegesCheck,
  writesCheck,
  pepperCheck,
  poolerCheck,
  connectionsCheck,
  standbysCheck,
  exportsCheck,
  encryptionKeysCheck,
  citusCheck,
  clocksCheck,
  redisCheck,
  tablesCheck,
  backlogCheck,
];

/**
 * The longest time of a check. Statements and connections have shorter limits of their own; this one is for
 * a check with several.
 */
const CHECK_TIMEOUT_MS = 10_000;
/** The longest time of all checks: below the 30 s that the command line waits for a reply. */
const TOTAL_TIMEOUT_MS = 25_000;

const SEVERITIES: readonly Severity[] = ["error", "warning", "info"];

/** Makes every check with a connection of its own, which it closes. */
export async function diagnoseAlone(config: Config): Promise<Diagnosis> {
  let pool: Pool | undefined;
  try {
    return await diagnose(config, (pooler) => {
      // Where a replica could not serve, the other checks are made as if the variable were set.
      const throughPgBouncer =
        config.ONCEWARD_PGBOUNCER || whyPgBouncerSwitchIsMissing(pooler, config) !== undefined;
      pool = openPool({ databaseUrl: config.DATABASE_URL, size: 1, throughPgBouncer });
      return pool;
    });
  } finally {
    await pool?.close();
  }
}

/**
 * Makes every check, one after another, and returns what they found. A check that fails or takes too long
 * becomes a finding, and hides no other. Changes nothing, and never rejects.
 *
 * @param runnerFor returns the runner of statements, once it is known whether there is a pooler in between.
 */
export async function diagnose(config: Config, runnerFor: (pooler: Pooler) => Runner): Promise<Diagnosis> {
  const startedAtMs = performance.now();
  const findings: Finding[] = [];
  const passed: string[] = [];
  const skipped: string[] = [];
  const pooler = await probePooler(config.DATABASE_URL).catch((error: unknown) => {
    findings.push(
      findingOf({ id: "postgres_unreachable", summary: `Postgres does not answer: ${messageOf(error)}.` }),
    );
    return undefined;
  });
  const context = { config, pooler: pooler ?? UNKNOWN, runner: runnerFor(pooler ?? UNKNOWN) };
  for (const check of CHECKS) {
    if (check.needsPostgres !== false && pooler === undefined) {
      skipped.push(check.name);
      continue;
    }
    const leftMs = TOTAL_TIMEOUT_MS - (performance.now() - startedAtMs);
    const observations = await examine(check, context, Math.min(CHECK_TIMEOUT_MS, Math.max(leftMs, 0)));
    if (observations.length === 0) passed.push(check.name);
    findings.push(...observations.map(findingOf));
  }
  findings.sort((a, b) => SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity));
  return { findings, passed, skipped };
}

/** For the checks that do not need Postgres. */
const UNKNOWN: Pooler = { mode: "none", acceptsSettings: true };

/** Makes one check. Its failure is an observation. */
async function examine(
  check: Check,
  context: CheckContext,
  limitMs: number,
): Promise<readonly Observation[]> {
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error("it was not done in time")), limitMs);
  });
  try {
    return await Promise.race([check.examine(context), tooLate]);
  } catch (error) {
    return [{ id: "check_failed", summary: `The check ${check.name} failed: ${messageOf(error)}.` }];
  } finally {
    clearTimeout(timer);
  }
}

/** Returns the messages of an error and of its causes. */
function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // A host name with several addresses fails once for each; the aggregate has no message.
  const own = error instanceof AggregateError ? error.errors.map(messageOf).join("; ") : error.message;
  return error.cause === undefined ? own : `${own}: ${messageOf(error.cause)}`;
}
