import type { Config } from "../../core/config/config.ts";
import type { Runner } from "../../core/store/pool.ts";
import type { Pooler } from "../../core/store/pooler.ts";
import type { Observation } from "./findings.ts";

/** What checks read from. */
export interface Patient {
  readonly config: Config;
  /** Runs statements, each bounded in time by the pool. */
  readonly runner: Runner;
  /** What stands between this process and Postgres. */
  readonly pooler: Pooler;
}

/** Examines one subject. */
export interface Check {
  /** The subject, such as `replica_clocks`. */
  readonly name: string;
  /** Whether it needs Postgres; it is left out if Postgres is unreachable. */
  readonly needsPostgres: boolean;
  /** Returns what is wrong; nothing if all is well. @throws any error: doctor reports it as a finding. */
  examine(patient: Patient): Promise<readonly Observation[]>;
}
