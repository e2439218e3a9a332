/**
 * The published entry `@onceward/client/inbox`: for effects that are rows in the caller's own Postgres, where the
 * record that an operation is done can commit together with them.
 *
 * `once` needs no service. `completeIn` and `startRelay` deliver committed completions to the service, despite
 * crashes.
 */

export { type CompletedClaim, completeIn } from "./inbox/complete-in.ts";
export {
  type DeliverOptions,
  type DeliveryCounts,
  deliverCompletions,
  type UndeliverableCompletion,
} from "./inbox/deliver.ts";
export {
  drizzleExecutor,
  type Executor,
  kyselyExecutor,
  pgExecutor,
  postgresExecutor,
  prismaExecutor,
  type TextRow,
  typeormExecutor,
} from "./inbox/executor.ts";
export { INBOX_MIGRATION } from "./inbox/migration.ts";
export { type InboxMessage, type OnceResult, once } from "./inbox/once.ts";
export { type Relay, type RelayOptions, startRelay } from "./inbox/relay.ts";
export { type SweepOptions, type SweepResult, sweep } from "./inbox/sweep.ts";
export type { Codec, EncodedValue } from "./run/codec.ts";
