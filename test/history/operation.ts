/**
 * What clients saw of the service: the operations that the recorder writes and the checker judges.
 *
 * Instants are milliseconds on one monotonic clock of the machine (`nowMs`), so that what several processes recorded can
 * be compared. Fencing tokens are numbers here: the recorder refuses one that a number can't hold.
 */

/** Names one record, as seen from outside. */
export interface RecordName {
  readonly tenant: string;
  readonly namespace: string;
  readonly key: string;
}

/** What was asked for. A fingerprint and a result are named by a hash of theirs. */
export type Request = ClaimRequest | SettlingRequest | { readonly kind: "lookup" } | AdminRequest;

export interface ClaimRequest {
  readonly kind: "claim";
  readonly fingerprint?: string;
  readonly claimId?: string;
  /** Unset: the policy's default. */
  readonly leaseMs?: number;
  /** How long the call was to be held while the key is in progress. */
  readonly waitMs?: number;
  readonly acceptAmbiguous?: boolean;
  readonly retentionMs?: number;
}

/** What the holder of a claim, named by its token, does with it. */
export type SettlingRequest =
  | {
      readonly kind: "complete";
      readonly token: number;
      readonly result: ResultName;
      readonly retentionMs?: number;
    }
  | { readonly kind: "release"; readonly token: number }
  | { readonly kind: "extendLease"; readonly token: number; readonly leaseMs?: number };

/** What an administrator does to a record, through ResolveRecord or through retention. */
export type AdminRequest =
  | { readonly kind: "forget" }
  | { readonly kind: "adminRelease" }
  | { readonly kind: "adminComplete"; readonly result: ResultName }
  | RestampRequest;

/** Not a call of its own: what a RetentionChange with `applyToExisting` does to one record. */
export interface RestampRequest extends Retentions {
  readonly kind: "restamp";
}

/** A result as far as the checker needs it: whether it is the same, and which retention it has. */
export interface ResultName {
  readonly hash: string;
  /** A terminal failure, which has a retention of its own. */
  readonly isFailure?: boolean;
}

/** How long a namespace remembers. */
export interface Retentions {
  readonly keyRetentionMs: number;
  readonly resultRetentionMs: number;
  readonly failureRetentionMs: number;
}

/** What the caller was told. */
export type Answer =
  /** Nobody can know whether it happened; the reason is for people. Without a failure, nobody was told anything. */
  | { readonly kind: "unknown"; readonly reason: string; readonly failure?: Failure }
  /** A definite refusal: it had no effect. The reason is of the service's catalogue. */
  | { readonly kind: "refused"; readonly reason: string }
  | { readonly kind: "claimed"; readonly token: number; readonly attempt?: number }
  | { readonly kind: "inProgress" }
  /** A replay; without a hash, the result's retention has ended. */
  | { readonly kind: "completed"; readonly hash?: string }
  | { readonly kind: "ambiguous" }
  /** The answer to a Complete. */
  | { readonly kind: "stored"; readonly alreadyCompleted: boolean }
  /** The answer to a Release, an ExtendLease, or what an administrator did. */
  | { readonly kind: "ok" }
  /** The answers to a Lookup. */
  | { readonly kind: "absent" }
  | ({ readonly kind: "record" } & SeenRecord)
  /** No answer to what was asked: another call's, or none where a batch owed one. */
  | { readonly kind: "malformed"; readonly problem: string };

/** The error that a caller saw of a call of unknown outcome. */
export interface Failure {
  /** As connect has it, such as "Unavailable". */
  readonly code: string;
  /**
   * Who made it: the service, which answered with it; a connection that broke; or the caller's own side, whose time was up,
   * or which could make nothing of what it got.
   */
  readonly by: "service" | "connection" | "caller";
  readonly message: string;
}

/** A record as somebody read it. */
export interface SeenRecord {
  readonly state: "inProgress" | "completed" | "released" | "ambiguous";
  readonly token: number;
  /** Undefined: no claim brought one. */
  readonly fingerprint?: string;
  /** Of a completed record; undefined once the result's retention has ended. */
  readonly hash?: string;
}

/** One call, or one item of a batch, from outside. */
export interface Operation extends RecordName {
  /** Unique in the whole history. */
  readonly id: string;
  readonly client: string;
  readonly replica: string;
  readonly request: Request;
  readonly answer: Answer;
  readonly invokedAtMs: number;
  /** Infinity where the outcome is unknown: the effect may still come. */
  readonly returnedAtMs: number;
  /** The batch that it travelled in, and its place there. */
  readonly batch?: { readonly id: string; readonly index: number };
  /** The tenants whose marks were found in the answer's payloads and owners. */
  readonly marks?: readonly string[];
}

/** A namespace's policy was given other retentions, from some moment between the two instants on. */
export interface RetentionChange extends Retentions {
  readonly tenant: string;
  readonly namespace: string;
  readonly invokedAtMs: number;
  readonly returnedAtMs: number;
  /** For a change that is applied to existing records: when the last of them had it; Infinity if nobody knows. */
  readonly appliedToExistingAtMs?: number;
}

/** What holds in a namespace at the beginning of a history. */
export interface NamespacePolicy extends Retentions {
  readonly tenant: string;
  readonly namespace: string;
  readonly defaultLeaseMs: number;
  readonly onLeaseExpiry: "RECLAIM" | "HOLD";
}

/** Everything that is judged together. */
export interface History {
  readonly operations: readonly Operation[];
  /** One for each namespace that was used. */
  readonly policies: readonly NamespacePolicy[];
  readonly retentionChanges?: readonly RetentionChange[];
}

/** A record's name as one string; no two names share one. */
export function nameOf({ tenant, namespace, key }: RecordName): string {
  return JSON.stringify([tenant, namespace, key]);
}

/** Whether the caller was told what happened. */
export function isDefinite({ answer }: Operation): boolean {
  return answer.kind !== "unknown";
}

/** The machine's monotonic clock, the same in all of its processes. */
export function nowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
