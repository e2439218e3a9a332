import { TerminalError } from "../errors/errors.ts";
import type { Claim } from "./claim.ts";
import type { Runner } from "./client.ts";
import type { CodecRunOptions, RunOptions } from "./run-options.ts";

/** The options of `run` that HTTP and RPC adapters pass to it unchanged. */
export type AdapterRunOptions = Pick<
  RunOptions,
  "namespace" | "leaseMs" | "timeoutMs" | "owner" | "onUnavailable"
>;

/** Returns an adapter's options that are `run`'s. */
export function pickRunOptions(options: AdapterRunOptions): AdapterRunOptions {
  const { namespace, leaseMs, timeoutMs, owner, onUnavailable } = options;
  return { namespace, leaseMs, timeoutMs, owner, onUnavailable };
}

/**
 * Returns the caller's id, by an adapter's `caller` option. @throws TypeError if it is empty: all callers would share
 * keys.
 */
export function callerOf<Native>(caller: (native: Native) => string, native: Native): string {
  const id = caller(native);
  if (typeof id === "string" && id !== "") return id;
  throw new TypeError("caller() must return a string that is not empty");
}

/**
 * The outcome of an operation that a handler carries out:
 *
 * - `ran`: the handler was called, and this is its outcome, stored or not.
 * - `replayed`: the handler was not called; this value was stored before.
 * - `refused`: the handler was not called, because of this error of `run`; a TerminalError is a stored failure.
 */
export type GuardedRun<Stored, Handled> =
  | { readonly kind: "ran"; readonly outcome: PromiseSettledResult<Handled> }
  | { readonly kind: "replayed"; readonly value: Stored }
  | { readonly kind: "refused"; readonly error: unknown };

/**
 * Runs a handler of whose answer only a part is stored, and distinguishes the handler's errors from those of the run.
 *
 * @param store returns the stored part of an outcome. It throws for an outcome that is not stored, and a
 *   TerminalError of its own for a failure that is stored. A TerminalError that the handler threw, such as a nested
 *   run's, releases the claim like any other error.
 */
export async function guardedRun<Stored, Handled>(
  onceward: Runner,
  operation: CodecRunOptions<Stored>,
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
  // `store` alone decides about errors; the client's default `classifyError` must not.
  const classifyError = () => "release" as const;
  const [run] = await Promise.allSettled([onceward.runDetailed({ ...operation, classifyError }, ran)]);
  const [outcome] = outcomes;
  // This caller gets the handler's outcome even if it could not be stored for repeats.
  if (outcome !== undefined) return { kind: "ran", outcome };
  if (run.status === "rejected") return { kind: "refused", error: run.reason };
  return { kind: "replayed", value: run.value.value };
}

/** Wraps a TerminalError, because `run` stores every TerminalError. */
function withoutTerminal(error: unknown): unknown {
  if (!(error instanceof TerminalError)) return error;
  return new Error(`${error.name}: ${error.message}`, { cause: error });
}
