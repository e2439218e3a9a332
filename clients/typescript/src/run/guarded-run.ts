import { TerminalError } from "../errors/errors.ts";
import { checkFunction, refusedField } from "../errors/violations.ts";
import { MAX_TIMER_MS } from "../wire/limits.ts";
import type { Claim, RunningClaim } from "./claim.ts";
import type { Runner } from "./client.ts";
import type { Warnings } from "./events.ts";
import { type CodecRunOptions, checkNamespaceOptions, type RunOptions } from "./run-options.ts";

/** Shorter than the timeouts of load balancers and clients (most are 30 or 60 s), longer than most outages. */
const DEFAULT_ANSWER_AFTER_MS = 10_000;

/** How long a guarded handler's answer waits for the service. */
export interface AnswerOptions {
  /**
   * How long an answer is held while the service does not store it, in milliseconds. Then it is sent, because its effect
   * has happened; it is stored as soon as the service can, and until then duplicates find it in progress.
   * Default: 10,000.
   */
  readonly answerAfterMs?: number | undefined;
}

/** The options of `run` that HTTP and RPC adapters pass to it unchanged, and those of `guardedRun`. */
export interface AdapterRunOptions
  extends AnswerOptions,
    Pick<
      RunOptions,
      "namespace" | "leaseMs" | "timeoutMs" | "owner" | "onUnavailable" | "onError" | "marksBegin"
    > {}

/** Returns an adapter's options that are `run`'s or `guardedRun`'s. @throws InvalidRequestError for an invalid `answerAfterMs`. */
export function pickRunOptions(
  options: AdapterRunOptions & { readonly stores?: unknown },
): AdapterRunOptions & Pick<RunOptions, "stores"> {
  const { namespace, leaseMs, timeoutMs, owner, onUnavailable, onError, marksBegin, answerAfterMs } = options;
  const isDuration = Number.isInteger(answerAfterMs ?? 0) && (answerAfterMs ?? 0) >= 0;
  if (!isDuration || (answerAfterMs ?? 0) > MAX_TIMER_MS)
    throw refusedField("answerAfterMs", `must be a whole number of milliseconds, 0-${MAX_TIMER_MS}`);
  const stores = options.stores === "mark" ? options.stores : undefined;
  return { namespace, leaseMs, timeoutMs, owner, onUnavailable, onError, marksBegin, answerAfterMs, stores };
}

/** The options of HTTP and RPC adapters that both have. */
interface SharedGuardOptions extends AdapterRunOptions {
  readonly waitMs?: unknown;
  readonly caller: unknown;
  readonly required?: unknown;
  readonly fingerprint?: unknown;
  readonly stores?: unknown;
  readonly resolve?: unknown;
}

/** Checks the options that HTTP and RPC adapters share, when a guard is made. @throws InvalidRequestError. */
export function checkGuardOptions(options: SharedGuardOptions): void {
  const { waitMs, caller, required, fingerprint, stores, resolve } = options;
  // The check covers what a program in JavaScript may pass.
  checkNamespaceOptions({ ...pickRunOptions(options), waitMs: waitMs as number | undefined });
  checkFunction("caller", caller);
  checkOptionalFunction("fingerprint", fingerprint);
  if (stores !== "mark") checkOptionalFunction("stores", stores);
  checkOptionalFunction("resolve", resolve);
  if (required !== undefined && typeof required !== "boolean") {
    throw refusedField("required", `must be true or false, is ${typeof required}`);
  }
}

/** Warns, once per guard, that a call was not handled because it has no fingerprint. @param answer such as "400". */
export function warnOfFingerprint(warnings: Warnings, answer: string, error: unknown): void {
  const why = error instanceof Error ? error.message : `${error}`;
  const message = `A request was answered with ${answer}, because it has no fingerprint: ${why}`;
  warnings.warnOnce("ONCEWARD_NO_FINGERPRINT", message);
}

/** Checks an option that may be missing. @throws InvalidRequestError. */
export function checkOptionalFunction(field: string, value: unknown): void {
  if (value !== undefined) checkFunction(field, value);
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
 * Resolves at the latest `answerAfterMs` after the handler; the run then continues without its caller.
 *
 * @param store returns the stored part of an outcome. It throws for an outcome that is not stored, and a
 *   TerminalError of its own for a failure that is stored. A TerminalError that the handler threw, such as a nested
 *   run's, releases the claim like any other error.
 */
export async function guardedRun<Stored, Handled>(
  onceward: Runner,
  { answerAfterMs = DEFAULT_ANSWER_AFTER_MS, ...operation }: CodecRunOptions<Stored> & AnswerOptions,
  handle: (claim: Claim) => Promise<Handled>,
  store: (outcome: PromiseSettledResult<Handled>) => Stored,
): Promise<GuardedRun<Stored, Handled>> {
  const outcomes: PromiseSettledResult<Handled>[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;
  let answer: () => void;
  const answerDue = new Promise<void>((resolve) => {
    answer = resolve;
  });
  const ran = async (claim: Claim) => {
    const [handled] = await Promise.allSettled([handle(claim)]);
    // The framework may have swallowed the error, and answered.
    const { unknownBecause: reason }: Claim & Partial<RunningClaim> = claim;
    const outcome = reason === undefined ? handled : ({ status: "rejected", reason } as const);
    outcomes.push(outcome);
    timer = setTimeout(answer, answerAfterMs);
    try {
      return store(outcome);
    } catch (error) {
      throw outcome.status === "rejected" && error === outcome.reason ? withoutTerminal(error) : error;
    }
  };
  // `store` alone decides about errors; the client's default `classifyError` must not.
  const classifyError = () => "release" as const;
  const running = Promise.allSettled([onceward.runDetailed({ ...operation, classifyError }, ran)]);
  await Promise.race([running, answerDue]);
  clearTimeout(timer);
  const [outcome] = outcomes;
  // This caller gets the handler's outcome even if it could not be stored for duplicates.
  if (outcome !== undefined) return { kind: "ran", outcome };
  const [run] = await running;
  if (run.status === "rejected") return { kind: "refused", error: run.reason };
  return { kind: "replayed", value: run.value.value };
}

/** Wraps a TerminalError, because `run` stores every TerminalError. */
function withoutTerminal(error: unknown): unknown {
  if (!(error instanceof TerminalError)) return error;
  return new Error(`${error.name}: ${error.message}`, { cause: error });
}
