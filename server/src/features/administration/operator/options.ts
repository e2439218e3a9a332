import type { ChangeListener } from "../../../core/auth/authenticate.ts";
import type { Pool } from "../../../core/store/pool.ts";
import type { ServerFacts } from "../../../core/store/server-facts.ts";
import type { Diagnosis } from "../../doctor/diagnose.ts";
import type { PageTokens } from "../pages.ts";

/** The parts that OperatorService needs. */
export interface OperatorOptions {
  readonly pool: Pool;
  readonly pageTokens: PageTokens;
  /** Receives every change, after its commit. */
  readonly changes: ChangeListener;
  /** Keys the digests of API keys. */
  readonly pepper: string;
  /** The configuration without its secrets. */
  readonly redactedConfig: Readonly<Record<string, string>>;
  readonly replicaState: {
    readonly id: string;
    /** Returns the active degraded states. */
    readonly degraded: () => readonly string[];
    /** Returns what the last heartbeat read; undefined before the first one. */
    readonly lastBeaten: () => ServerFacts | undefined;
  };
  /** Examines the database, Redis and the replicas. */
  readonly diagnose: () => Promise<Diagnosis>;
}
