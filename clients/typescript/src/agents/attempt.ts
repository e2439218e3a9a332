import { CompletionError, isAbout, OncewardError } from "../errors/errors.ts";
import { classOf, isUnavailable } from "../errors/mapping.ts";
import { ReasonClass } from "../gen/onceward/v1/facts_pb.ts";
import { type Claim, ClaimAbandoned, type RunningClaim } from "../run/claim.ts";
import { judgeUnder } from "../run/judgement.ts";
import { type BlockedReason, ToolBlockedError } from "./blocked.ts";
import type { ToolCall } from "./options.ts";

/** One attempt to make a tool call: what it learns, and what it means for the model. */
export class Attempt {
  readonly call: ToolCall;
  readonly tool: string;
  readonly key: string;
  readonly fingerprint: Uint8Array;
  /** The claim, once the tool has begun. */
  claim: Claim | undefined;
  /** Whether the outcome of the call is unknown, so that a later call with the same arguments is a repeat. */
  isUnknown = false;
  /** Whether this attempt, or an earlier one of this process, has ended with an unknown outcome. */
  hasEnded = false;

  constructor(call: ToolCall, key: string, fingerprint: Uint8Array) {
    this.call = call;
    this.tool = call.tool;
    this.key = key;
    this.fingerprint = fingerprint;
  }

  /**
   * Returns the tool's function, noting its claim. It throws ClaimAbandoned if the tool failed, and may have had its effect, so that
   * the lease expires.
   */
  begin(fn: (claim: Claim) => unknown): (claim: Claim) => Promise<unknown> {
    return async (claim: Claim & Partial<RunningClaim>) => {
      this.claim = claim;
      try {
        const value = await fn(claim);
        if (claim.unknownBecause === undefined) return value;
      } catch (error) {
        if (judgeUnder(claim, error) !== "unknown") throw error;
      }
      throw new ClaimAbandoned("A tool was stopped, and may have had its effect.");
    };
  }

  /** Settles as the run does, in the words of a tool call. @throws as `settle`. */
  async settled(run: Promise<unknown>): Promise<unknown> {
    try {
      return await run;
    } catch (error) {
      return this.settle(error);
    }
  }

  /**
   * Returns the tool's value if only its storage failed.
   *
   * @throws ToolBlockedError if the tool did not run; else the tool's own error.
   */
  settle(error: unknown): unknown {
    if (error instanceof CompletionError && this.claim !== undefined && isAbout(error, this.claim)) {
      this.isUnknown = !error.stored;
      if (error.effect.status === "fulfilled") return error.effect.value;
      throw error.effect.reason;
    }
    if (error instanceof ClaimAbandoned) {
      this.hasEnded = true;
      throw this.#blocked("AMBIGUOUS");
    }
    if (this.claim !== undefined || !(error instanceof OncewardError)) throw error;
    const reason = blockedReason(error);
    if (reason === undefined) throw error;
    throw this.#blocked(this.hasEnded && reason === "IN_PROGRESS" ? "AMBIGUOUS" : reason, error);
  }

  #blocked(reason: BlockedReason, cause?: OncewardError): ToolBlockedError {
    this.isUnknown = reason === "AMBIGUOUS" || reason === "IN_PROGRESS" || reason === "TOO_OLD";
    return new ToolBlockedError(reason, this, cause);
  }
}

/** Returns why a tool did not begin; undefined for a mistake of the program or its credential. */
function blockedReason(error: OncewardError): BlockedReason | undefined {
  switch (classOf(error)) {
    case ReasonClass.ASK:
      return "AMBIGUOUS";
    // Also if the lease ended before the tool began, so that another process may have begun it.
    case ReasonClass.WAIT:
      return "IN_PROGRESS";
    case ReasonClass.GONE:
      return "RESULT_UNAVAILABLE";
    case ReasonClass.REUSED:
      return "ARGUMENTS_CHANGED";
    case ReasonClass.TOO_OLD:
      return "TOO_OLD";
    default:
      return isUnavailable(error) ? "UNAVAILABLE" : undefined;
  }
}

/** Settles as the work does. @throws ToolBlockedError if the service is unavailable. */
export async function orBlocked<T>(about: { tool: string; key: string }, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof OncewardError && isUnavailable(error))) throw error;
    throw new ToolBlockedError("UNAVAILABLE", about, error);
  }
}
