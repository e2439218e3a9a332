import type { ChangeListener } from "../../../core/auth/authenticate.ts";
import type { Handlers } from "../../../core/calls/call.ts";
import type { DatabaseClock } from "../../../core/domain/database-clock.ts";
import type { ReplicaState } from "../../../core/feature.ts";
import type { Pool } from "../../../core/store/pool.ts";
import type { OperatorService } from "../../../gen/onceward/v1/operator_pb.ts";
import type { PageTokens } from "../pages.ts";

/** The parts that OperatorService needs. */
export interface OperatorOptions {
  readonly pool: Pool;
  readonly databaseClock: Pick<DatabaseClock, "latestMs">;
  readonly pageTokens: PageTokens;
  /** Receives every change, after its commit. */
  readonly changes: ChangeListener;
  /** Keys the digests of API keys. */
  readonly pepper: string;
  /** The configuration without its secrets. */
  readonly redactedConfig: Readonly<Record<string, string>>;
  readonly replicaState: ReplicaState;
}

/** The handlers of some RPCs of OperatorService. */
export type OperatorRpcs<Name extends keyof Handlers<typeof OperatorService>> = Pick<
  Handlers<typeof OperatorService>,
  Name
>;
