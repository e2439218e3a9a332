import type { ResultUnavailableError, SavedCheckpoint, Violation } from "../errors/errors.ts";
import { TerminalError } from "../errors/errors.ts";
import { checkText, throwIfAny } from "../errors/violations.ts";
import { Record_State, type Record as StoredRecord } from "../gen/onceward/v1/record_pb.ts";
import { MAX_KEY_BYTES } from "../wire/limits.ts";
import { type Calls, dateOf } from "./calls.ts";
import { readCheckpoint } from "./checkpoint.ts";
import type { Codec } from "./codec.ts";
import { replay } from "./result-codec.ts";
import { retrying } from "./retry.ts";
import { checkNamespaceOptions, type RunOptions } from "./run-options.ts";

/** Names the key to look up. */
export interface LookupOptions<T> extends Pick<RunOptions, "namespace" | "key" | "timeoutMs"> {
  /** Restores the stored value. Default: `jsonCodec`. */
  readonly codec?: Codec<T> | undefined;
  /** Ends the call for this caller, with the signal's reason. Default: none. */
  readonly signal?: AbortSignal | undefined;
}

/** The newest claim of a key. */
interface Claimed {
  readonly owner: string;
  readonly attempt: number;
  readonly fencingToken: bigint;
  readonly claimedAt: Date;
  /** When the key is forgotten. */
  readonly expiresAt: Date;
}

/** A key whose operation is done. */
interface Completed extends Claimed {
  readonly completedAt: Date;
}

/** A key whose operation has no outcome. */
interface Unfinished extends Claimed {
  readonly leaseExpiresAt: Date;
  readonly checkpoint: SavedCheckpoint | undefined;
}

/**
 * What the service knows of a key:
 *
 * - `unknown`: nothing. The key was never claimed, or is forgotten.
 * - `in-progress`: a holder runs the operation, or its lease has expired and the next run takes over.
 * - `released`: the last attempt gave up, for this reason. The next run runs.
 * - `ambiguous`: the lease has expired, and it is unknown whether the effect happened.
 * - `completed`: done, with this value, which duplicates get.
 * - `failed`: failed permanently, with this error, which duplicates throw.
 * - `unreadable`: done. The value can't be read or is no longer stored, as the error says.
 */
export type KeyState<T> =
  | { readonly state: "unknown" }
  | (Unfinished & { readonly state: "in-progress" })
  | (Unfinished & { readonly state: "released"; readonly reason: string })
  | (Unfinished & { readonly state: "ambiguous" })
  | (Completed & { readonly state: "completed"; readonly value: T })
  | (Completed & { readonly state: "failed"; readonly error: TerminalError })
  | (Completed & { readonly state: "unreadable"; readonly error: ResultUnavailableError });

/** Looks a key up. Promises what `Onceward.lookup` promises. */
export async function lookUp<T>(
  calls: Calls,
  options: LookupOptions<T>,
  timeoutMs: number,
): Promise<KeyState<T>> {
  const { namespace, key, codec, signal } = options;
  const violations: Violation[] = [];
  checkText(violations, "key", key, { minBytes: 1, maxBytes: MAX_KEY_BYTES });
  throwIfAny(violations);
  checkNamespaceOptions({ namespace, timeoutMs });
  signal?.throwIfAborted();
  const send = () => calls.orEnd(calls.lookup({ namespace, key }), signal);
  const { record } = await retrying(send, performance.now() + timeoutMs, calls.closing, signal);
  return record === undefined ? { state: "unknown" } : stateOf(record, codec);
}

function stateOf<T>(record: StoredRecord, codec: Codec<T> | undefined): KeyState<T> {
  const { owner, attempt, fencingToken } = record;
  const claimed = {
    owner,
    attempt,
    fencingToken,
    claimedAt: dateOf(record.claimedAt),
    expiresAt: dateOf(record.expiresAt),
  };
  if (record.state === Record_State.COMPLETED) return outcomeOf(record, claimed, codec);
  const leaseExpiresAt = dateOf(record.leaseExpiresAt);
  const unfinished = { ...claimed, leaseExpiresAt, checkpoint: readCheckpoint(record.checkpoint) };
  switch (record.state) {
    case Record_State.RELEASED:
      return { ...unfinished, state: "released", reason: record.releaseReason };
    case Record_State.AMBIGUOUS:
      return { ...unfinished, state: "ambiguous" };
    default:
      return { ...unfinished, state: "in-progress" };
  }
}

function outcomeOf<T>(record: StoredRecord, claimed: Claimed, codec: Codec<T> | undefined): KeyState<T> {
  const { namespace, key, result, resultExpired } = record;
  const completed = { ...claimed, completedAt: dateOf(record.completedAt) };
  const ref = { namespace, key, fencingToken: undefined };
  try {
    return { ...completed, state: "completed", value: replay({ result, resultExpired }, codec, ref) };
  } catch (error) {
    if (error instanceof TerminalError) return { ...completed, state: "failed", error };
    // `replay` throws no other.
    return { ...completed, state: "unreadable", error: error as ResultUnavailableError };
  }
}
