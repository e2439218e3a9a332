import { ResultUnavailableError, TerminalError } from "../errors/errors.ts";
import { refusedField } from "../errors/violations.ts";
import type { Claim } from "./claim.ts";
import { noValueCodec } from "./codec.ts";
import { type CodecRunOptions, checkRunOptions, type RunOptions, type RunResult } from "./run-options.ts";

/** Names the key that may have been seen, and says how to ask. */
export type SeenOptions = Omit<
  RunOptions,
  "mode" | "stores" | "leaseMs" | "classifyError" | "onError" | "describeError" | "resolve" | "marksBegin"
>;

/** The same for many keys, which share the options. */
export interface SeenAllOptions extends Omit<SeenOptions, "key" | "fingerprint" | "keyCreatedAt"> {
  /** Each as `RunOptions.key`; in any number. */
  readonly keys: readonly string[];
}

/** `Onceward.runDetailed`. */
type Run = (
  options: CodecRunOptions<undefined>,
  fn: (claim: Claim) => undefined,
) => Promise<RunResult<unknown>>;

/** Asks whether a key was seen, by a run at most once of nothing. Promises what `Onceward.seen` promises. */
export async function seen(run: Run, options: SeenOptions): Promise<boolean> {
  try {
    // A namespace's `resolve` is for its runs: here nothing is run.
    const asked = { ...options, mode: "at-most-once", resolve: undefined, codec: noValueCodec } as const;
    const { replayed } = await run(asked, () => undefined);
    return replayed;
  } catch (error) {
    // A run has completed the key, with a failure or with a value that is gone.
    if (error instanceof TerminalError || error instanceof ResultUnavailableError) return true;
    throw error;
  }
}

/** Asks for many keys at once; the client's calls gather them into batches. Promises what `Onceward.seenAll` promises. */
export async function seenAll(run: Run, { keys, ...options }: SeenAllOptions): Promise<boolean[]> {
  if (!Array.isArray(keys)) throw refusedField("keys", "must be an array of keys");
  // Before the first call, which completes its key.
  for (const key of keys) checkRunOptions({ ...options, key });
  const first = new Map<string, Promise<boolean>>();
  const answers = keys.map((key) => {
    const earlier = first.get(key);
    if (earlier !== undefined) return earlier.then(() => true);
    const answer = seen(run, { ...options, key });
    first.set(key, answer);
    return answer;
  });
  // An error is thrown after the last call, so that a repeat does not meet one of them.
  await Promise.allSettled(answers);
  return await Promise.all(answers);
}
