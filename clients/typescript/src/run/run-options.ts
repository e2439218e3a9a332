import type { Violation } from "../errors/errors.ts";
import { checkText, throwIfAny } from "../errors/violations.ts";
import {
  MAX_CLAIM_ID_BYTES,
  MAX_KEY_BYTES,
  MAX_LEASE_MS,
  MAX_OWNER_BYTES,
  MAX_TIME_MS,
  MIN_LEASE_MS,
  MIN_TIME_MS,
  NAMESPACE_PATTERN,
  NAMESPACE_RULE,
} from "../wire/limits.ts";
import { type Codec, noValueCodec } from "./codec.ts";
import type { Judging } from "./judging.ts";
import type { Resolve } from "./resolution.ts";

/** Identifies an operation, and configures how to run it. */
export interface RunOptions extends Judging {
  /** The group of operations that share a policy, such as "charges": `[a-z0-9]([a-z0-9._-]{0,62})`. */
  readonly namespace: string;
  /**
   * The operation's key, 1-255 bytes of UTF-8 without control characters. Made where the operation is created, and
   * the same on every delivery: never the id of a job or an attempt, nor a timestamp.
   */
  readonly key: string;
  /**
   * The request that the key belongs to: any JSON value, a body such as FormData, or the 32 bytes of a SHA-256, as
   * `fingerprintWithFiles` accepts them. The same key with a different fingerprint is refused (FINGERPRINT_MISMATCH).
   * Leave out the parts that differ between deliveries of one operation. Default: none, and any request with the key
   * gets the stored value.
   */
  readonly fingerprint?: unknown;
  /**
   * When the key was made: the same on every delivery, such as the time that the operation's row, or its first message, was
   * created. Where the namespace's policy says so (`late_keys`), a key that is older than its retention is refused
   * and does not run again. Default: the time in the key, if the whole key is a UUID of version 1, 6 or 7,
   * as `newKey` makes them, or a ULID.
   */
  readonly keyCreatedAt?: Date | undefined;
  /**
   * The id of this attempt, at most 128 bytes: a run with the id of the claim that holds the key continues that claim, instead
   * of waiting for it. For programs that are replayed from their beginning, such as durable executions; two runs that may happen
   * at once must differ. Because its effect may have begun, a run that ends before its function leaves the claim to its lease and the
   * namespace's policy. Default: a new UUID.
   */
  readonly claimId?: string | undefined;
  /**
   * `at-most-once`: the key is completed in the call that claims it, before the function runs. That saves a call; but a function
   * that throws, or whose process dies, does not run again, its value is not stored, and duplicates get undefined. There is no
   * lease, token or checkpoint; `resolve` and `claimId` are refused. Default: the value is stored, and a function that threw runs again.
   */
  readonly mode?: "at-most-once" | undefined;
  /**
   * `mark`: of a success, only that it happened is stored and not its value, such as a secret that is shown once. A duplicate
   * rejects with a ResultUnavailableError (RESULT_LOST). Default: the value is stored.
   */
  readonly stores?: "mark" | undefined;
  /**
   * How long the claim outlives a process that dies, in milliseconds, at least 1,000. While the function runs,
   * heartbeats prolong the lease. Default: the namespace's policy.
   */
  readonly leaseMs?: number | undefined;
  /**
   * While another holder runs the operation: `wait`, for `waitMs`, or `throw` InProgressError at once. Default:
   * `wait`.
   */
  readonly onInProgress?: "wait" | "throw" | undefined;
  /**
   * How long to wait for another holder, in milliseconds, before InProgressError is thrown. 0 means the same as
   * `onInProgress: "throw"`. Default: 30,000, or the client's.
   */
  readonly waitMs?: number | undefined;
  /** How long to retry calls that the service does not answer, in milliseconds. Default: 15,000, or the client's. */
  readonly timeoutMs?: number | undefined;
  /** The name of the holder, shown to other callers, at most 128 bytes. Default: host and process, or the client's. */
  readonly owner?: string | undefined;
  /**
   * What to do if the service is unreachable for `timeoutMs`: `throw`, so that nothing runs, or `proceed`, so that
   * the function runs without a claim, for effects that are better repeated than missed. This emits an event
   * (`unguarded`) and, once per client, a warning of the process (ONCEWARD_UNGUARDED). Any answer of the service is
   * final: a refusal, a quota, another holder's claim. Default: `throw`.
   */
  readonly onUnavailable?: "throw" | "proceed" | undefined;
  /**
   * Returns the text that is stored as the reason of a release when the function throws, for people who look at the
   * record; at most 1,024 bytes are kept. The service stores it in plain form and shows it in the console, so that it
   * must not hold secrets or personal data: `(error) => String(error)` stores every message. If it throws, the default
   * is stored. Default: the error's name and code, without its message; or the client's.
   */
  readonly describeError?: ((error: unknown) => string) | undefined;
  /**
   * Whether to run although it is unknown if an earlier attempt had its effect: the caller has found out, or accepts a
   * repetition. Default: false.
   */
  readonly acceptAmbiguous?: boolean | undefined;
  /**
   * Finds out what became of the effect of an earlier attempt whose lease ended without an outcome, for example by asking the
   * provider for `claim.deriveKey`'s key. Called under the claim, before the function, whether the namespace's policy is HOLD or
   * RECLAIM. Returns `happened(value)`, `didNotHappen()`, `stillOpen({ retryAfterMs })` or `unknown()`; an error means unknown. Unless
   * it is known what happened, the record is given back as it was before, unless the run has a `claimId`. Not called with
   * `acceptAmbiguous`. Default: none.
   */
  readonly resolve?: Resolve | undefined;
  /**
   * Whether `claim.begin()` marks when the effect begins, so that a crash or an error before that is not ambiguous: the next delivery
   * runs, regardless of policy and `onError`, unless the error is terminal. The function awaits `begin` right before its effect; with
   * `resolve`, the run does so before the function. It costs a call. Default: false.
   */
  readonly marksBegin?: boolean | undefined;
  /**
   * Ends the run for this caller. Before the function runs, the run rejects at once with the signal's reason, and a claim
   * that is granted nevertheless is released. While the function runs, `claim.signal` aborts with the same reason; the
   * function decides how it ends, and its outcome is stored. Default: none.
   */
  readonly signal?: AbortSignal | undefined;
}

/** The options that do not belong to one operation. */
type NamespaceRunOptions = Omit<RunOptions, "key" | "keyCreatedAt" | "claimId">;

/** {@link RunOptions} with the codec that stores the function's value. */
export interface CodecRunOptions<T> extends RunOptions {
  /** Stores the function's value, and restores it for duplicates. */
  readonly codec: Codec<T>;
}

/** {@link RunOptions} of a run whose value is stored as JSON, by `jsonCodec`. */
export interface JsonRunOptions extends RunOptions {
  /** Left out. Default: `jsonCodec`. */
  readonly codec?: undefined;
}

/** The options of a run with any codec. */
export type AnyRunOptions = CodecRunOptions<unknown> | JsonRunOptions;

/** The options that a client can set for all of its runs. */
export type RunDefaults = Pick<
  RunOptions,
  "owner" | "waitMs" | "timeoutMs" | "classifyError" | "onError" | "describeError"
>;

/** {@link RunDefaults} with the client's own defaults filled in. */
export interface ResolvedDefaults {
  readonly owner: string;
  readonly waitMs: number;
  readonly timeoutMs: number;
  readonly classifyError: RunOptions["classifyError"];
  readonly onError: RunOptions["onError"];
  readonly describeError: RunOptions["describeError"];
  readonly guard: "on" | "off-in-development";
}

/** Checks a run's options before anything is sent. @throws InvalidRequestError with every violation. */
export function checkRunOptions(options: RunOptions & { readonly codec?: unknown }): void {
  const violations: Violation[] = [];
  checkShared(violations, options);
  checkText(violations, "key", options.key, { minBytes: 1, maxBytes: MAX_KEY_BYTES });
  const { claimId, keyCreatedAt } = options;
  if (claimId !== undefined)
    checkText(violations, "claimId", claimId, { minBytes: 1, maxBytes: MAX_CLAIM_ID_BYTES });
  // A repeat with the id gets the same answer, and would run again what ran; `seen` runs nothing.
  if (claimId !== undefined && options.mode !== undefined && options.codec !== noValueCodec)
    violations.push({ field: "claimId", description: "does not combine with mode" });
  if (keyCreatedAt !== undefined && !isTimestamp(keyCreatedAt)) {
    violations.push({ field: "keyCreatedAt", description: "must be a valid Date of the years 1-9999" });
  }
  if (options.signal !== undefined && typeof options.signal?.addEventListener !== "function") {
    violations.push({ field: "signal", description: "must be an AbortSignal" });
  }
  throwIfAny(violations);
}

/** Returns whether a value is a Date that a Timestamp of the contract can hold. */
export function isTimestamp(value: unknown): boolean {
  return value instanceof Date && value.getTime() >= MIN_TIME_MS && value.getTime() <= MAX_TIME_MS;
}

/** Checks a namespace's name and the options of its runs. @throws InvalidRequestError with every violation. */
export function checkNamespaceOptions(options: NamespaceRunOptions): void {
  const violations: Violation[] = [];
  checkShared(violations, options);
  throwIfAny(violations);
}

/** Adds the violations of the options that the runs of a namespace may share. */
function checkShared(violations: Violation[], options: NamespaceRunOptions): void {
  if (typeof options.namespace !== "string" || !NAMESPACE_PATTERN.test(options.namespace)) {
    violations.push({ field: "namespace", description: NAMESPACE_RULE });
  }
  checkDuration(violations, "leaseMs", options.leaseMs, MIN_LEASE_MS, MAX_LEASE_MS);
  checkDefaults(violations, options);
  const { mode, stores, onInProgress, onUnavailable, resolve, marksBegin } = options;
  if (marksBegin !== undefined && typeof marksBegin !== "boolean")
    violations.push({ field: "marksBegin", description: "must be true or false" });
  if (stores !== undefined && stores !== "mark") {
    violations.push({ field: "stores", description: 'must be "mark" or unset' });
  }
  if (mode !== undefined && mode !== "at-most-once") {
    violations.push({ field: "mode", description: 'must be "at-most-once" or unset' });
  }
  if (resolve !== undefined && typeof resolve !== "function")
    violations.push({ field: "resolve", description: "must be a function" });
  if (resolve !== undefined && mode !== undefined)
    violations.push({ field: "resolve", description: "does not combine with mode" });
  if (onInProgress !== undefined && onInProgress !== "wait" && onInProgress !== "throw") {
    violations.push({ field: "onInProgress", description: 'must be "wait" or "throw"' });
  }
  if (onUnavailable !== undefined && onUnavailable !== "throw" && onUnavailable !== "proceed") {
    violations.push({ field: "onUnavailable", description: 'must be "throw" or "proceed"' });
  }
}

/** Adds the violations of the options that both a run and a client may set. */
export function checkDefaults(
  violations: Violation[],
  { owner, waitMs, timeoutMs, onError, ...functions }: RunDefaults,
): void {
  if (onError !== undefined && onError !== "release" && onError !== "unknown") {
    violations.push({ field: "onError", description: 'must be "release" or "unknown"' });
  }
  for (const field of ["classifyError", "describeError"] as const) {
    if (functions[field] === undefined || typeof functions[field] === "function") continue;
    violations.push({ field, description: "must be a function" });
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

/** The result of a run. */
export type RunResult<T> = {
  /** The value that the function returned, now or before. */
  readonly value: T;
  /** When the operation was completed, by the database's clock. */
  readonly completedAt: Date;
  /** When the key is forgotten: a retry after this moment is a new operation. */
  readonly expiresAt: Date;
  /**
   * False if the service was unreachable and `onUnavailable` is "proceed", or the client's `guard` is off: the function
   * ran, and nothing was stored.
   * Then `attempt` and `fencingToken` are 0, and both times are the end of the run by this process's clock.
   */
  readonly guarded: boolean;
} & (
  | { readonly replayed: true }
  | {
      readonly replayed: false;
      /** 1 for the key's first claim, one more for each later one: after a release and after a takeover. */
      readonly attempt: number;
      readonly fencingToken: bigint;
    }
);
