import type { Logger } from "pino";
import type { Admission } from "../access/admission.ts";
import type { Authenticator } from "../access/authenticate.ts";
import type { SessionFinder } from "../access/sessions.ts";
import type { Repeating } from "../background/repeat.ts";
import type { Host } from "../commands/host.ts";
import type { Config } from "../config/config.ts";
import type { ConfiguredIssuer } from "../config/configured-issuer.ts";
import type { OpenedPool, Pool, PoolOptions, Runner } from "../database/pool.ts";
import type { Pooler } from "../database/pooler.ts";
import type { ServerFacts } from "../database/replicas.ts";
import type { DatabaseClock } from "../domain/database-clock.ts";
import type { OperationHooks } from "../records/after-operation.ts";
import type { AdministrationPool } from "../records/engine/administration-pool.ts";
import type { RecordValues } from "../records/engine/record-values.ts";
import type { Shards } from "../records/engine/shards.ts";
import type { RecordStore } from "../records/record-store.ts";
import type { EntryFormat } from "../records/replay/entry-format.ts";
import type { SweptNamespace } from "../records/sweep.ts";
import type { BackgroundTask } from "../telemetry/background-metrics.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { TenantLabels } from "../telemetry/tenant-labels.ts";
import type { WatchedSources } from "../telemetry/watched-metrics.ts";
import type { WebPage } from "../transport/http/web-page.ts";
import type { Pipeline } from "../transport/pipeline.ts";
import type { Route } from "../transport/route.ts";

/**
 * A feature of the service, by all that it adds to the core. The composition lists the features; a feature without its line
 * there is not part of the service.
 */
export interface Feature {
  readonly commands?: readonly Command[];
  readonly migrateOptions?: readonly MigrateOption[];
  readonly checks?: readonly Check[];
  /** Returns how values are stored. At most one feature has it; without it they are stored in plain form. */
  readonly openValues?: (options: ValuesOptions) => StoredValues;
  /** Returns the shards of the records; undefined on a plain Postgres. At most one feature has it. */
  readonly openShards?: (options: ShardsOptions) => Promise<Shards | undefined>;
  /** Returns the sessions of people, and the page that starts them. At most one feature has it. */
  readonly openPage?: (options: PageOptions) => Promise<OpenPage | undefined>;
  /** Adds to a replica. `earlier`: what the features before this one in the list have added. */
  readonly compose?: (core: CoreParts, earlier: readonly FeatureParts[]) => FeatureParts;
}

/** What a feature adds to one replica. */
export interface FeatureParts {
  readonly routes?: readonly Route[];
  /** Tasks that change records: they end before the calls that may wait for them are refused. */
  readonly tasks?: readonly Repeating[];
  /** Tasks that store counts: they end after the last call was counted. */
  readonly flushes?: readonly Repeating[];
  readonly hooks?: Partial<OperationHooks>;
  /** Receives what a statement of the sweep deleted. */
  readonly onSwept?: (byNamespace: readonly SweptNamespace[]) => void;
  /** As `sweepRecords`: selects the keys that `onSwept` receives. */
  readonly sampleSeed?: bigint;
  readonly forgetKeys?: ForgetKeys;
  readonly watched?: Pick<WatchedSources, "ambiguousRecords">;
}

/** Removes, in a transaction, what features have stored of a namespace's keys. */
export type ForgetKeys = (transaction: Runner, tenantId: number, namespace: string) => Promise<void>;

/** Returns one function for those of several features. */
export function forgetKeysOf(features: readonly FeatureParts[]): ForgetKeys {
  const all = features.flatMap(({ forgetKeys }) => forgetKeys ?? []);
  return async (...parameters) => {
    for (const forgetKeys of all) await forgetKeys(...parameters);
  };
}

/** A command of `onceward-server`. */
export interface Command {
  readonly name: string;
  /** Its arguments, as the usage shows them. */
  readonly synopsis?: string;
  /** One line of the usage. */
  readonly summary: string;
  readonly run: (host: Host) => Promise<void>;
}

/** An option of the command `migrate`, given as `--name`. */
export interface MigrateOption {
  readonly name: string;
  /** Called before the migrations. */
  readonly check?: (config: Config) => Promise<void>;
  /** Called after the migrations, or in their place. Returns lines to print. */
  readonly run: (config: Config) => Promise<readonly string[]>;
  readonly withMigrations: boolean;
}

/** Examines one subject for `doctor`. */
export interface Check {
  /** The subject, such as `replica_clocks`. */
  readonly name: string;
  /** False: it is made also if Postgres is unreachable. */
  readonly needsPostgres?: false;
  /** Returns what is wrong; nothing if all is well. @throws any error: doctor reports it as a finding. */
  examine(context: CheckContext): Promise<readonly { readonly id: string; readonly summary: string }[]>;
}

/** What checks read from. */
export interface CheckContext {
  readonly config: Config;
  /** Runs statements, each bounded in time by the pool. */
  readonly runner: Runner;
  /** The pooler between this process and Postgres, if any. */
  readonly pooler: Pooler;
}

/** How values are stored in rows, and completions in the cache. */
export interface StoredValues {
  readonly values: RecordValues;
  readonly entries: EntryFormat;
  /** @throws CommandError if this replica lacks the key under which the installation stores values. */
  requireKeys(runner: Runner): Promise<void>;
  /** The tasks that store values again, under the current key. */
  tasks(core: Pick<CoreParts, "config" | "tasks" | "metrics" | "onFailed">): readonly Repeating[];
}

export interface ValuesOptions {
  readonly config: Config;
  readonly metrics: Pick<Metrics, "unreadableRecords">;
  readonly log: Logger;
}

export interface ShardsOptions {
  /** Returns the database URL with the current password. */
  readonly databaseUrl: () => string;
  readonly log: Logger;
  readonly pool: Pool;
  /** Opens another pool, which reports to the replica's metrics. */
  readonly openPool: (options: Omit<PoolOptions, "onConnected">) => OpenedPool;
  /** Returns a pool whose statements are traced as those of `pool`. */
  readonly traced: (pool: Pool) => Pool;
}

export interface PageOptions {
  readonly config: Config;
  readonly log: Logger;
  readonly pool: Pool;
  /** As AuthenticatorOptions. */
  readonly maxAgeMs: number | undefined;
  /** Undefined: no issuer is configured. */
  readonly issuer: ConfiguredIssuer | undefined;
  /** Another directory with the files of the page, for tests. */
  readonly dir: string | undefined;
}

/** Sessions, which the authenticator needs, and then the page, which needs the authenticator. */
export interface OpenPage {
  readonly sessions: SessionFinder;
  createPage(core: Pick<CoreParts, "pipeline" | "authenticator">): WebPage;
}

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
  /** Wakes the calls that wait for a record, on every replica. */
  readonly onSettled: (name: string) => void;
  /** Returns the handler of a task's errors. A failed task is retried at its next interval. */
  readonly onFailed: (task: BackgroundTask) => (error: unknown) => void;
}
