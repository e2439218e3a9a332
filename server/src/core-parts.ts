import type { Logger } from "pino";
import type { Admission } from "./access/admission.ts";
import type { Authenticator } from "./access/authenticate.ts";
import type { Config } from "./config/config.ts";
import type { Pool, Runner } from "./database/pool.ts";
import type { ServerFacts } from "./database/replicas.ts";
import type { DatabaseClock } from "./domain/database-clock.ts";
import type { AdministrationPool } from "./records/engine/administration-pool.ts";
import type { RecordValues } from "./records/engine/record-values.ts";
import type { RecordStore } from "./records/record-store.ts";
import type { BackgroundTask } from "./telemetry/background-metrics.ts";
import type { Metrics } from "./telemetry/metrics.ts";
import type { TenantLabels } from "./telemetry/tenant-labels.ts";
import type { Pipeline } from "./transport/pipeline.ts";

/** Removes, in a transaction, what features have stored of a namespace's keys. */
export type ForgetKeys = (transaction: Runner, tenantId: number, namespace: string) => Promise<void>;

/** What features use of a replica. */
export interface CoreParts {
  readonly config: Config;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly tenantLabels: TenantLabels;
  readonly replica: { readonly id: string; readonly version: string };
  /** For calls. */
  readonly pool: Pool;
  readonly administrationPool: AdministrationPool;
  /** For background tasks: without spans. */
  readonly tasks: { readonly pool: Pool; readonly administrationPool: AdministrationPool };
  readonly databaseClock: DatabaseClock;
  readonly values: RecordValues;
  readonly records: RecordStore;
  readonly admission: Admission;
  readonly authenticator: Authenticator;
  readonly pipeline: Pipeline;
  /** Returns the id of the installation, which each restore or promotion of the database changes. */
  readonly installationId: () => string;
  /** What its operators see. */
  readonly replicaState: {
    readonly id: string;
    /** Returns the active degraded states. */
    readonly degraded: () => readonly string[];
    /** Returns what the last heartbeat read; undefined before the first one. */
    readonly lastBeaten: () => ServerFacts | undefined;
  };
  readonly forgetKeys: ForgetKeys;
  /** Wakes the calls that wait for a record, on every replica. */
  readonly onSettled: (name: string) => void;
  /** Returns the handler of a task's errors. A failed task is retried at its next interval. */
  readonly onFailed: (task: BackgroundTask) => (error: unknown) => void;
}
