import type { Code } from "@connectrpc/connect";
import type { ClientReason, ErrorReason } from "../gen/onceward/v1/errors_pb.ts";

/** A reason of the service's catalogue; each is explained in `errors.proto`. */
export type CatalogueReason = Exclude<keyof typeof ErrorReason, "UNSPECIFIED">;

/**
 * Why a call was refused: a reason of the service's catalogue, or one of this client's own (`ClientReason` in `errors.proto`).
 * Reasons of a newer server, unknown to this client, are passed on unchanged.
 */
export type Reason =
  | CatalogueReason
  | Exclude<keyof typeof ClientReason, "UNSPECIFIED">
  | (string & Record<never, never>);

/** One request field that is malformed or over a limit; `description` names the limit. */
export interface Violation {
  readonly field: string;
  readonly description: string;
}

/** Names the claim that an error is about. */
export interface ClaimRef {
  readonly namespace: string;
  readonly key: string;
  /** Undefined if no claim was granted. 0 for a run without a claim (`onUnavailable: "proceed"`). */
  readonly fencingToken: bigint | undefined;
}

/** The details of an error, beside its message. */
export interface ErrorDetails {
  readonly claim?: ClaimRef | undefined;
  readonly code?: Code | undefined;
  readonly metadata?: Readonly<Record<string, string>> | undefined;
  readonly violations?: readonly Violation[] | undefined;
  readonly retryDelayMs?: number | undefined;
  readonly requestId?: string | undefined;
  readonly cause?: unknown;
}

/**
 * Any failure between the caller and the service. An error of the guarded function is never wrapped in it.
 *
 * Branch on `reason`; the text of `message` is for people. Where a guarded function calls `run` itself, `claim` says
 * which run the error belongs to.
 */
export class OncewardError extends Error {
  override readonly name: string = "OncewardError";
  readonly reason: Reason;
  /** The claim that the error is about; undefined if it is about no single claim, or the claim's name is malformed. */
  readonly claim: ClaimRef | undefined;
  /** The gRPC status, if the error came over the wire. */
  readonly code: Code | undefined;
  /** Machine-readable details, as `errors.proto` lists them for the reason. */
  readonly metadata: Readonly<Record<string, string>>;
  /** Every violation of an INVALID_REQUEST. */
  readonly violations: readonly Violation[];
  /** How long to wait before a retry, in milliseconds, if the service said so. */
  readonly retryDelayMs: number | undefined;
  /** Names the refused call, or the batch that carried it, in the service's log; undefined if the service did not answer. */
  readonly requestId: string | undefined;

  constructor(reason: Reason, message: string, facts: ErrorDetails = {}) {
    const text = facts.claim === undefined ? message : `${message} (${claimText(facts.claim)})`;
    super(text, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.reason = reason;
    this.claim = facts.claim;
    this.code = facts.code;
    this.metadata = facts.metadata ?? {};
    this.violations = facts.violations ?? [];
    this.retryDelayMs = facts.retryDelayMs;
    this.requestId = facts.requestId;
  }

  /** Returns the error's fields for a log line in JSON. The fencing token becomes text, because JSON has no bigint. */
  toJSON(): Record<string, unknown> {
    const { name, reason, message, claim, code, metadata, violations, retryDelayMs, requestId } = this;
    const fencingToken = claim?.fencingToken?.toString();
    return {
      name,
      reason,
      message,
      ...(claim && { claim: { ...claim, fencingToken } }),
      code,
      metadata,
      violations,
      retryDelayMs,
      requestId,
    };
  }
}

function claimText({ namespace, key, fencingToken }: ClaimRef): string {
  const token = fencingToken === undefined ? "" : `, fencing token ${fencingToken}`;
  return `namespace ${namespace}, key ${JSON.stringify(key)}${token}`;
}

/** Returns whether the error is about this claim, not about the claim of a run within or around it. */
export function isAbout(error: OncewardError, { namespace, key, fencingToken }: ClaimRef): boolean {
  const { claim } = error;
  return claim?.namespace === namespace && claim.key === key && claim.fencingToken === fencingToken;
}

/** Another holder has the claim, and still had it after `waitMs`. Nothing ran; a later retry is safe. */
export class InProgressError extends OncewardError {
  override readonly name = "InProgressError";
  /** The holder's name, as it gave it. */
  readonly owner: string;
  readonly attempt: number;
  readonly leaseExpiresAt: Date;

  constructor(holder: {
    owner: string;
    attempt: number;
    leaseExpiresAt: Date;
    retryDelayMs: number;
    claim?: ClaimRef | undefined;
  }) {
    const { retryDelayMs, claim } = holder;
    const who = holder.owner || "an unnamed owner";
    super("IN_PROGRESS", `Attempt ${holder.attempt} is in progress at ${who}.`, { retryDelayMs, claim });
    this.owner = holder.owner;
    this.attempt = holder.attempt;
    this.leaseExpiresAt = holder.leaseExpiresAt;
  }
}

/** The last checkpoint of an earlier holder of the claim. */
export interface SavedCheckpoint {
  readonly name: string;
  /** The value that was passed to `saveCheckpoint`; bytes if another client saved bytes that are not JSON. */
  readonly state: unknown;
}

/**
 * The last holder's lease expired, it is unknown whether the effect happened, and the namespace's policy is HOLD.
 * Nothing ran. Let `resolve` find out whether it happened, or an administrator resolve the record. `cause` is the error that
 * `resolve` threw.
 */
export class AmbiguousError extends OncewardError {
  override readonly name = "AmbiguousError";
  /** The last holder's name, as it gave it. */
  readonly owner: string;
  readonly attempt: number;
  readonly leaseExpiredAt: Date;
  readonly checkpoint: SavedCheckpoint | undefined;

  constructor(last: {
    owner: string;
    attempt: number;
    leaseExpiredAt: Date;
    checkpoint: SavedCheckpoint | undefined;
    claim?: ClaimRef | undefined;
    cause?: unknown;
  }) {
    const { claim, cause } = last;
    const who = last.owner || "an unnamed owner";
    super("AMBIGUOUS", `It is unknown whether attempt ${last.attempt} at ${who} had its effect.`, {
      claim,
      cause,
    });
    this.owner = last.owner;
    this.attempt = last.attempt;
    this.leaseExpiredAt = last.leaseExpiredAt;
    this.checkpoint = last.checkpoint;
  }
}

/**
 * The effect happened, once, but its value is not available. Nothing ran now.
 *
 * - `RESULT_EXPIRED`: the value's retention has ended.
 * - `RESULT_LOST`: the value could not be stored, see {@link CompletionError}.
 * - `RESULT_NOT_JSON`, `CODEC_FAILED`: this run's codec can't decode the value, see `cause`.
 * - `INTERNAL`: the result is of a kind that this client does not know.
 */
export class ResultUnavailableError extends OncewardError {
  override readonly name = "ResultUnavailableError";
}

/**
 * The function ran to its end in this process, but its outcome could not be stored unchanged. `effect` is the
 * outcome.
 *
 * - `stored`: the operation is stored as done without its value, so it does not run again; duplicates get a {@link
 *   ResultUnavailableError}. `reason` says why: RESULT_NOT_JSON, CODEC_FAILED, RESULT_TOO_LARGE, INVALID_REQUEST.
 * - Not stored, `CLAIM_SUPERSEDED`: the lease expired and another holder took over, so the effect may happen twice.
 * - Not stored, any other reason: the service could not be reached in time. Once the lease has expired, the next
 *   delivery runs the function again (policy RECLAIM) or finds the record ambiguous (HOLD).
 */
export class CompletionError extends OncewardError {
  override readonly name = "CompletionError";
  readonly effect: PromiseSettledResult<unknown>;
  /** Whether the operation is stored as done. */
  readonly stored: boolean;

  constructor(effect: PromiseSettledResult<unknown>, why: OncewardError, stored: boolean, claim?: ClaimRef) {
    super(why.reason, `The effect ran, but its outcome could not be stored: ${why.message}`, {
      code: why.code,
      metadata: why.metadata,
      violations: why.violations,
      requestId: why.requestId,
      cause: why,
      claim,
    });
    this.effect = effect;
    this.stored = stored;
  }
}

/**
 * The operation failed permanently. If the guarded function throws it, it is stored, and every repeat throws the same
 * error: `message`, `name` and `details` (a JSON value, at most the policy's max_result_bytes) are kept; the class,
 * the `cause` and the stack are not.
 *
 * A function that rethrows a nested run's TerminalError fails permanently as well: a repeat would get the same error
 * from the nested run.
 */
export class TerminalError extends Error {
  override readonly name: string;
  readonly details: unknown;

  constructor(message: string, details?: unknown, options: ErrorOptions & { readonly name?: string } = {}) {
    super(message, options);
    this.name = options.name ?? "TerminalError";
    this.details = details;
  }
}
