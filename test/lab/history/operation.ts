/**
 * The operations that the recorder writes and the checker judges.
 *
 * Instants are milliseconds on one monotonic clock of the machine (`nowMs`), so that what several processes
 * recorded can be compared. Fencing tokens are numbers here: the recorder refuses unsafe integers.
 */

/** Names one record, as seen from outside. */
export interface RecordName {
  readonly tenant: string;
  readonly namespace: string;
  readonly key: string;
}

/** A request. Fingerprints and results are named by their hashes. */
export type Request =
  | ClaimRequest
  | SettlingRequest
  | { readonly kind: "lookup" }
  | AdminRequest
  | RestoreRequest;

export interface ClaimRequest {
  readonly kind: "claim";
  readonly fingerprint?: string;
  readonly claimId?: string;
  /** Unset: the policy's default. */
  readonly leaseMs?: number;
  /** How long the call waits while the key is in progress. */
  readonly waitMs?: number;
  readonly acceptAmbiguous?: boolean;
  readonly marksBegin?: boolean;
  /** The claim completes its record itself, with this result. */
  readonly completesWith?: string;
  readonly retentionMs?: number;
  /** When the key was created, on the history's clock; unset: the call does not name a time. */
  readonly keyCreatedAtMs?: number;
}

/** A request by the holder of a claim, which its token names. */
export type SettlingRequest =
  | {
      readonly kind: "complete";
      readonly token: number;
      readonly result: ResultName;
      readonly retentionMs?: number;
    }
  | { readonly kind: "release"; readonly token: number; readonly giveBack?: boolean }
  | {
      readonly kind: "extendLease";
      readonly token: number;
      readonly leaseMs?: number;
      readonly begin?: boolean;
    };

/** A change of a record by an administrator, through ResolveRecord or through retention. */
export type AdminRequest =
  | { readonly kind: "forget" }
  | { readonly kind: "adminRelease" }
  | { readonly kind: "adminComplete"; readonly result: ResultName }
  | RestampRequest;

/** The effect of a RetentionChange with `applyToExisting` on one record; not a separate call. */
export interface RestampRequest extends Retentions {
  readonly kind: "restamp";
}

/** What happens to one record when the whole database is copied, and when the copy takes its place; not a call. */
export type RestoreRequest = { readonly kind: "copy" } | { readonly kind: "restore" };

/** A result as the checker needs it: its identity, and which retention it has. */
export interface ResultName {
  readonly hash: string;
  /** Whether it is a terminal failure, which has its own retention. */
  readonly isFailure?: boolean;
}

/** The retentions of a namespace. */
export interface Retentions {
  readonly keyRetentionMs: number;
  readonly resultRetentionMs: number;
  readonly failureRetentionMs: number;
}

/** The answer that the caller got. */
export type Answer =
  /** Unknown whether it happened; the reason is for people. Without `failure` no error arrived either. */
  | { readonly kind: "unknown"; readonly reason: string; readonly failure?: Failure }
  /** A definite refusal, without effect. The reason is from the service's catalogue. */
  | { readonly kind: "refused"; readonly reason: string }
  | { readonly kind: "claimed"; readonly token: number; readonly attempt?: number }
  /** The claim has completed the record itself. */
  | { readonly kind: "recorded" }
  | { readonly kind: "inProgress" }
  /** A replay; without a hash, the result's retention has ended. */
  | { readonly kind: "completed"; readonly hash?: string }
  | { readonly kind: "ambiguous" }
  /** The answer to a Complete. */
  | { readonly kind: "stored"; readonly alreadyCompleted: boolean }
  /** The answer to a Release, an ExtendLease, or an administrator's change. */
  | { readonly kind: "ok" }
  /** The answers to a Lookup. */
  | { readonly kind: "absent" }
  | ({ readonly kind: "record" } & SeenRecord)
  /** Not an answer to the request: another call's answer, or a missing item of a batch. */
  | { readonly kind: "malformed"; readonly problem: string };

/** The error that a caller saw of a call of unknown outcome. */
export interface Failure {
  /** Connect's name of the code, such as "Unavailable". */
  readonly code: string;
  /**
   * The origin: the service, which answered with it; a connection that broke; or the caller's own side, whose
   * deadline passed, or which could not parse the reply.
   */
  readonly by: "service" | "connection" | "caller";
  readonly message: string;
}

/** A record as a caller read it. */
export interface SeenRecord {
  readonly state: "inProgress" | "completed" | "released" | "ambiguous";
  readonly token: number;
  /** Undefined: no claim had one. */
  readonly fingerprint?: string;
  /** The result's hash of a completed record; undefined once its retention has ended. */
  readonly hash?: string;
}

/** One call, or one item of a batch, as its caller saw it. */
export interface Operation extends RecordName {
  /** Unique in the whole history. */
  readonly id: string;
  readonly client: string;
  readonly replica: string;
  readonly request: Request;
  readonly answer: Answer;
  readonly invokedAtMs: number;
  /** Infinity if the outcome is unknown: the effect may still come. */
  readonly returnedAtMs: number;
  /** Its batch and its index there. */
  readonly batch?: { readonly id: string; readonly index: number };
  /** The tenants whose marks were found in the answer's payloads and owners. */
  readonly marks?: readonly string[];
}

/** A change of a namespace's retentions, which took effect between the two instants. */
export interface RetentionChange extends Retentions {
  readonly tenant: string;
  readonly namespace: string;
  readonly invokedAtMs: number;
  readonly returnedAtMs: number;
  /** For a change that is applied to existing records: when the last of them had it; Infinity if unknown. */
  readonly appliedToExistingAtMs?: number;
}

/** An interval in which the database's clock was set forward; it was right before and after it. */
export interface ClockMove {
  readonly fromMs: number;
  readonly toMs: number;
  readonly aheadMs: number;
  /** How much earlier retention may end, of replicas that started meanwhile; undefined: a replica saw the clock move. */
  readonly retentionAheadMs?: number;
}

/** An interval in which a tenant's calls were refused, or moved away, in at least one of its homes. */
export interface TenantMove {
  readonly tenant: string;
  readonly fromMs: number;
  readonly toMs: number;
}

/** A namespace's policy at the beginning of a history. */
export interface NamespacePolicy extends Retentions {
  readonly tenant: string;
  readonly namespace: string;
  readonly defaultLeaseMs: number;
  readonly onLeaseExpiry: "RECLAIM" | "HOLD";
  /** How long after the record's first claim RECLAIM applies; unset: always. */
  readonly reclaimWithinMs?: number;
  /** Whether late keys are refused, and the time of each key is required. Then records outlast their keys' youth. */
  readonly refusesLateKeys?: boolean;
}

/**
 * A copy was made of the database, and took its place later: what was written in between is lost. Keys that were created
 * before the restore are refused from then on if they have no record.
 */
export interface Restore {
  readonly copiedFromMs: number;
  readonly copiedToMs: number;
  readonly restoredFromMs: number;
  readonly restoredToMs: number;
}

/** The operations and policies that are judged together. */
export interface History {
  readonly operations: readonly Operation[];
  /** One for each namespace that was used. */
  readonly policies: readonly NamespacePolicy[];
  readonly retentionChanges?: readonly RetentionChange[];
  readonly clockMoves?: readonly ClockMove[];
  readonly tenantMoves?: readonly TenantMove[];
  /** One after the other. */
  readonly restores?: readonly Restore[];
}

/** Returns a record's name as one unambiguous string. */
export function nameOf({ tenant, namespace, key }: RecordName): string {
  return JSON.stringify([tenant, namespace, key]);
}

/** Returns whether the outcome is known. */
export function isDefinite({ answer }: Operation): boolean {
  return answer.kind !== "unknown";
}

/** Returns the machine's monotonic clock in milliseconds, the same in all of its processes. */
export function nowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
