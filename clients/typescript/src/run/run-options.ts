import type { Codec } from "./codec.ts";
import type { Violation } from "../errors/errors.ts";
import { MAX_KEY_BYTES, MAX_LEASE_MS, MAX_OWNER_BYTES, MIN_LEASE_MS, NAMESPACE_PATTERN } from "../wire/limits.ts";
import { checkText, throwIfAny } from "../errors/violations.ts";

/** Names an operation, and says how to run it. */
export interface RunOptions {
  /** The group of operations whose policy holds, such as "charges": `[a-z0-9]([a-z0-9._-]{0,62})`. */
  readonly namespace: string;
  /**
   * The operation's own key, 1-255 bytes of UTF-8 without control characters. Made where the operation is born and the
   * same on every delivery: never a job's id, an attempt's or a timestamp.
   */
  readonly key: string;
  /**
   * The request that the key stands for, any JSON value, a body such as FormData, or the 32 bytes of a SHA-256: what
   * `fingerprintWithFiles` takes. The same key with another one is refused (FINGERPRINT_MISMATCH). Leave out what differs
   * between deliveries of one operation.
   */
  readonly fingerprint?: unknown;
  /**
   * How long the claim outlives a process that dies; while the function runs, heartbeats prolong it. At least 1,000.
   * Default: the namespace's policy.
   */
  readonly leaseMs?: number | undefined;
  /** While somebody else is doing it: `wait`, for `waitMs`, or `throw` InProgressError at once. Default: `wait`. */
  readonly onInProgress?: "wait" | "throw" | undefined;
  /**
   * How long to wait for somebody else who is doing it, before InProgressError is thrown. 0 is `onInProgress: "throw"` by
   * another name. Default: 30,000, or the client's.
   */
  readonly waitMs?: number | undefined;
  /** How long the service may fail to answer, over all attempts, before the run does. Default: 15,000, or the client's. */
  readonly timeoutMs?: number | undefined;
  /** Who runs it, shown to others, at most 128 bytes. Default: host and process, or the client's. */
  readonly owner?: string | undefined;
  /**
   * What to do where the service can't be asked for `timeoutMs`: `throw`, so that nothing runs, or `proceed`, so that the
   * function runs without a claim, for effects whose absence is worse than their repetition. That it does is an event
   * (`unguarded`) and a warning of the process, once per client (ONCEWARD_UNGUARDED). Where the service has answered
   * anything, a refusal, a quota or somebody else's claim, that is final. Default: `throw`.
   */
  readonly onUnavailable?: "throw" | "proceed" | undefined;
  /**
   * What an error of the function's means for the operation: `release`, so that the next delivery runs it again, or
   * `terminal`, so that it is stored as FAILURE. Every delivery, the first one too, then throws a TerminalError with the
   * error's `name`, `message` and `details`; the first one has the error itself as its `cause`. Not asked of a
   * TerminalError, which always is. One that throws means `release`. Default: `release`, or the client's.
   */
  readonly classifyError?: ((error: unknown) => "release" | "terminal") | undefined;
  /** Run it although nobody knows whether an earlier attempt had its effect: the caller found out, or does not mind. */
  readonly acceptAmbiguous?: boolean | undefined;
}

/** {@link RunOptions}, and how the function's value is stored. */
export interface CodedRunOptions<T> extends RunOptions {
  readonly codec: Codec<T>;
}

/** {@link RunOptions} of a run whose value is stored as JSON, by `jsonCodec`. */
export interface UncodedRunOptions extends RunOptions {
  readonly codec?: undefined;
}

/** The options of a run with whichever codec. */
export type AnyRunOptions = CodedRunOptions<unknown> | UncodedRunOptions;

/** The options that a client can set for all of its runs. */
export type RunDefaults = Pick<RunOptions, "owner" | "waitMs" | "timeoutMs" | "classifyError">;

/** The same, once the client has filled in what was left out. */
export interface ResolvedDefaults {
  readonly owner: string;
  readonly waitMs: number;
  readonly timeoutMs: number;
  readonly classifyError: RunOptions["classifyError"];
}

/** @throws InvalidRequestError with every violation, before anything is sent. */
export function checkRunOptions(options: RunOptions): void {
  const violations: Violation[] = [];
  if (typeof options.namespace !== "string" || !NAMESPACE_PATTERN.test(options.namespace)) {
    violations.push({ field: "namespace", description: `must match ${NAMESPACE_PATTERN.source}` });
  }
  checkText(violations, "key", options.key, { minBytes: 1, maxBytes: MAX_KEY_BYTES });
  checkDuration(violations, "leaseMs", options.leaseMs, MIN_LEASE_MS, MAX_LEASE_MS);
  checkDefaults(violations, options);
  const { onInProgress, onUnavailable } = options;
  if (onInProgress !== undefined && onInProgress !== "wait" && onInProgress !== "throw") {
    violations.push({ field: "onInProgress", description: 'must be "wait" or "throw"' });
  }
  if (onUnavailable !== undefined && onUnavailable !== "throw" && onUnavailable !== "proceed") {
    violations.push({ field: "onUnavailable", description: 'must be "throw" or "proceed"' });
  }
  throwIfAny(violations);
}

/** Adds what is wrong with what a run and a client both may set. */
export function checkDefaults(
  violations: Violation[],
  { owner, waitMs, timeoutMs, classifyError }: RunDefaults,
): void {
  if (classifyError !== undefined && typeof classifyError !== "function") {
    violations.push({ field: "classifyError", description: "must be a function" });
  }
  if (owner !== undefined) checkText(violations, "owner", owner, { minBytes: 0, maxBytes: MAX_OWNER_BYTES });
  checkDuration(violations, "waitMs", waitMs, 0, Number.MAX_SAFE_INTEGER);
  checkDuration(violations, "timeoutMs", timeoutMs, 1, Number.MAX_SAFE_INTEGER);
}

function checkDuration(
  violations: Violation[],
  field: string,
  valueMs: number | undefined,
  minMs: number,
  maxMs: number,
): void {
  if (valueMs === undefined) return;
  if (Number.isSafeInteger(valueMs) && valueMs >= minMs && valueMs <= maxMs) return;
  violations.push({ field, description: `must be a whole number of milliseconds, ${minMs}-${maxMs}` });
}
