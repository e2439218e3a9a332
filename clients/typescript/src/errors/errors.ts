import type { Code } from "@connectrpc/connect";
import type { ErrorReason } from "../gen/onceward/v1/errors_pb.ts";

/** A reason of the service's catalogue; each is explained in `errors.proto`. */
export type CatalogueReason = Exclude<keyof typeof ErrorReason, "UNSPECIFIED">;

/**
 * Why something was refused: a reason of the service's catalogue, or one of this client's own:
 *
 * - `NO_ANSWER`: the error did not come from Onceward but from what lies between (network, proxy); see `code`, `cause`.
 * - `CLOSED`: the client was closed before.
 * - `LEASE_LOST`: no heartbeat was answered before the lease ran out; the reason of an aborted `claim.signal`.
 * - `IN_PROGRESS`, `AMBIGUOUS`: see {@link InProgressError}, {@link AmbiguousError}.
 * - `RESULT_EXPIRED`, `RESULT_LOST`: see {@link ResultUnavailableError}.
 * - `RESULT_NOT_JSON`: the function returned what JSON can't say, or the stored result is no JSON.
 * - `CODEC_FAILED`: a codec of the caller's own threw, which is the `cause`.
 *
 * A newer server may have reasons that this client does not know; they come through as they are.
 */
export type Reason =
  | CatalogueReason
  | "NO_ANSWER"
  | "CLOSED"
  | "LEASE_LOST"
  | "IN_PROGRESS"
  | "AMBIGUOUS"
  | "RESULT_EXPIRED"
  | "RESULT_LOST"
  | "RESULT_NOT_JSON"
  | "CODEC_FAILED"
  | (string & Record<never, never>);

/** One request field that is malformed or over a limit; `description` names the limit. */
export interface Violation {
  readonly field: string;
  readonly description: string;
}

/** Names the claim that an error is about. */
export interface ErrorClaim {
  readonly namespace: string;
  readonly key: string;
  /** Undefined if no claim was granted. 0 for a run without a claim (`onUnavailable: "proceed"`). */
  readonly fencingToken: bigint | undefined;
}

/** What an error says beside its message. */
export interface ErrorFacts {
  readonly claim?: ErrorClaim | undefined;
  readonly code?: Code | undefined;
  readonly metadata?: Readonly<Record<string, string>> | undefined;
  readonly violations?: readonly Violation[] | undefined;
  readonly retryDelayMs?: number | undefined;
  readonly cause?: unknown;
}

/**
 * Whatever goes wrong between the caller and the service. What the guarded function throws is never wrapped in one.
 *
 * Branch on `reason`; the text of `message` is for people. Where functions run runs of their own, `claim` says whose error
 * it is.
 */
export class OncewardError extends Error {
  override readonly name: string = "OncewardError";
  readonly reason: Reason;
  /** The claim that the error is about; undefined where it concerns no single claim, or its name is malformed. */
  readonly claim: ErrorClaim | undefined;
  /** The gRPC status, if the error came over the wire. */
  readonly code: Code | undefined;
  /** Machine-readable facts, as `errors.proto` lists them for the reason. */
  readonly metadata: Readonly<Record<string, string>>;
  /** Every violation at once, for INVALID_REQUEST. */
  readonly violations: readonly Violation[];
  /** How long to wait before trying again, where the service said so. */
  readonly retryDelayMs: number | undefined;

  constructor(reason: Reason, message: string, facts: ErrorFacts = {}) {
    const text = facts.claim === undefined ? message : `${message} (${claimText(facts.claim)})`;
    super(text, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.reason = reason;
    this.claim = facts.claim;
    this.code = facts.code;
    this.metadata = facts.metadata ?? {};
    this.violations = facts.violations ?? [];
    this.retryDelayMs = facts.retryDelayMs;
  }

  /** Returns what the error says, for a log line in JSON. JSON has no bigint: a fencing token is written as text. */
  toJSON(): Record<string, unknown> {
    const { name, reason, message, claim, code, metadata, violations, retryDelayMs } = this;
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
    };
  }
}

function claimText({ namespace, key, fencingToken }: ErrorClaim): string {
  const token = fencingToken === undefined ? "" : `, fencing token ${fencingToken}`;
  return `namespace ${namespace}, key ${JSON.stringify(key)}${token}`;
}

/** Returns whether the error is about this claim, and not about that of a run within or around it. */
export function isAbout(error: OncewardError, { namespace, key, fencingToken }: ErrorClaim): boolean {
  const { claim } = error;
  return claim?.namespace === namespace && claim.key === key && claim.fencingToken === fencingToken;
}

/** Somebody else holds the claim, and still did when `waitMs` was over. Nothing ran; trying again later is safe. */
export class InProgressError extends OncewardError {
  override readonly name = "InProgressError";
  /** The holder, as it calls itself. */
  readonly owner: string;
  readonly attempt: number;
  readonly leaseExpiresAt: Date;

  constructor(holder: {
    owner: string;
    attempt: number;
    leaseExpiresAt: Date;
    retryDelayMs: number;
    claim?: ErrorClaim | undefined;
  }) {
    const { retryDelayMs, claim } = holder;
    const who = holder.owner || "an unnamed owner";
    super("IN_PROGRESS", `Attempt ${holder.attempt} is in progress at ${who}.`, { retryDelayMs, claim });
    this.owner = holder.owner;
    this.attempt = holder.attempt;
    this.leaseExpiresAt = holder.leaseExpiresAt;
  }
}

/** How far an earlier holder of the claim came. */
export interface SavedCheckpoint {
  readonly name: string;
  /** The value that `saveCheckpoint` was given; its bytes if somebody saved what is no JSON. */
  readonly state: unknown;
}

/**
 * The last holder's lease ran out, nobody knows whether the effect happened, and the namespace's policy is HOLD. Nothing
 * ran. Find out, and then run with `acceptAmbiguous`, or let an administrator resolve the record.
 */
export class AmbiguousError extends OncewardError {
  override readonly name = "AmbiguousError";
  /** The last holder, as it called itself. */
  readonly owner: string;
  readonly attempt: number;
  readonly leaseExpiredAt: Date;
  readonly checkpoint: SavedCheckpoint | undefined;

  constructor(last: {
    owner: string;
    attempt: number;
    leaseExpiredAt: Date;
    checkpoint: SavedCheckpoint | undefined;
    claim?: ErrorClaim | undefined;
  }) {
    const { claim } = last;
    const who = last.owner || "an unnamed owner";
    super("AMBIGUOUS", `Nobody knows whether attempt ${last.attempt} at ${who} had its effect.`, { claim });
    this.owner = last.owner;
    this.attempt = last.attempt;
    this.leaseExpiredAt = last.leaseExpiredAt;
    this.checkpoint = last.checkpoint;
  }
}

/**
 * The effect happened, once, but its value can't be had. Nothing ran now.
 *
 * - `RESULT_EXPIRED`: its retention has ended.
 * - `RESULT_LOST`: it could never be stored, see {@link CompletionError}.
 * - `RESULT_NOT_JSON`, `CODEC_FAILED`: this run's codec can't read it, see `cause`.
 */
export class ResultUnavailableError extends OncewardError {
  override readonly name = "ResultUnavailableError";
}

/**
 * The function ran to its end here, and its outcome could not be stored as it was. `effect` is that outcome.
 *
 * - `stored`: the operation is stored as done without its value, so it is not run again; repeats get a
 *   {@link ResultUnavailableError}. `reason` says why: RESULT_NOT_JSON, CODEC_FAILED, RESULT_TOO_LARGE, INVALID_REQUEST.
 * - Not stored, `CLAIM_SUPERSEDED`: the lease ran out and somebody took over, so the effect may happen twice.
 * - Not stored, anything else: the service could not be told in time. Once the lease has run out, the next delivery runs
 *   the function again (policy RECLAIM) or finds the record ambiguous (HOLD).
 */
export class CompletionError extends OncewardError {
  override readonly name = "CompletionError";
  readonly effect: PromiseSettledResult<unknown>;
  /** Whether the operation is stored as done. */
  readonly stored: boolean;

  constructor(
    effect: PromiseSettledResult<unknown>,
    why: OncewardError,
    stored: boolean,
    claim?: ErrorClaim,
  ) {
    super(why.reason, `The effect ran, but its outcome could not be stored: ${why.message}`, {
      code: why.code,
      metadata: why.metadata,
      violations: why.violations,
      cause: why,
      claim,
    });
    this.effect = effect;
    this.stored = stored;
  }
}

/**
 * The operation failed for good. Thrown by the guarded function, it is stored, and every repeat throws the same:
 * `message`, `name` and `details` (a JSON value, at most the policy's max_result_bytes) survive, the class, the `cause`
 * and the stack do not.
 *
 * A function that lets a nested run's TerminalError through fails for good as well: a repeat would get the same error
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
