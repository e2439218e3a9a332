import { TerminalError } from "../errors/errors.ts";
import type { Claim } from "./held-claim.ts";
import type { CodedRunOptions, RunOptions } from "./run-options.ts";
import type { Runner } from "./runner.ts";

/** The options of `run` that the adapters hand on as they are. */
export type HandedOn = Pick<RunOptions, "namespace" | "leaseMs" | "timeoutMs" | "owner" | "onUnavailable">;

/** Those of an adapter's options that are `run`'s. */
export function handedOn({ namespace, leaseMs, timeoutMs, owner, onUnavailable }: HandedOn): HandedOn {
  return { namespace, leaseMs, timeoutMs, owner, onUnavailable };
}

/**
 * What became of an operation that a handler carries out:
 *
 * - `ran`: the handler was called, and this is its outcome, whether or not it could be stored.
 * - `replayed`: it was not called; this was stored before.
 * - `refused`: it was not called, for this error of `run`; a TerminalError is one that was stored.
 */
export type GuardedRun<Stored, Handled> =
  | { readonly kind: "ran"; readonly outcome: PromiseSettledResult<Handled> }
  | { readonly kind: "replayed"; readonly value: Stored }
  | { readonly kind: "refused"; readonly error: unknown };

/**
 * Runs a handler whose answer is more than what is stored of it, and tells its own errors from those of the run.
 *
 * @param store what is stored of an outcome; throws what is not to be stored, and a TerminalError of its own for a failure
 *   that is. A TerminalError that the handler threw, such as a nested run's, releases the claim like any other error.
 */
export async function guardedRun<Stored, Handled>(
  onceward: Runner,
  operation: CodedRunOptions<Stored>,
  handle: (claim: Claim) => Promise<Handled>,
  store: (outcome: PromiseSettledResult<Handled>) => Stored,
): Promise<GuardedRun<Stored, Handled>> {
  const outcomes: PromiseSettledResult<Handled>[] = [];
  const ran = async (claim: Claim) => {
    const [outcome] = await Promise.allSettled([handle(claim)]);
    outcomes.push(outcome);
    try {
      return store(outcome);
    } catch (error) {
      throw outcome.status === "rejected" && error === outcome.reason ? withoutTerminal(error) : error;
    }
  };
  // What an adapter doesn't store it throws; no other policy is asked about that.
  const classifyError = () => "release" as const;
  const [run] = await Promise.allSettled([onceward.runDetailed({ ...operation, classifyError }, ran)]);
  const [outcome] = outcomes;
  // Whoever asked for the effect is told what came of it, also where a repeat can't be.
  if (outcome !== undefined) return { kind: "ran", outcome };
  if (run.status === "rejected") return { kind: "refused", error: run.reason };
  return { kind: "replayed", value: run.value.value };
}

/** `run` stores every TerminalError. */
function withoutTerminal(error: unknown): unknown {
  if (!(error instanceof TerminalError)) return error;
  return new Error(`${error.name}: ${error.message}`, { cause: error });
}
