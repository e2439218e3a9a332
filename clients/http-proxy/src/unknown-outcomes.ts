import {
  AmbiguousError,
  type Claim,
  type CodecRunOptions,
  InProgressError,
  type Onceward,
} from "@onceward/client";

/** What a guard needs of a client of Onceward. */
export type Runner = Pick<Onceward, "run" | "runDetailed">;

/** About 3 MB. The oldest is forgotten first: its repeats are in progress until its lease has expired. */
const MAX_REMEMBERED = 10_000;

/**
 * Returns the client, which remembers the attempts of this process whose outcome is unknown. Onceward calls such an attempt in progress
 * until its lease has expired, because no call gives a claim up without releasing it; here its repeats are ambiguous at once.
 */
export function rememberUnknown(onceward: Runner): Runner {
  const attempts = new Map<string, number>();
  const runDetailed = async (options: CodecRunOptions<unknown>, fn: (claim: Claim) => unknown) => {
    const name = JSON.stringify([options.namespace, options.key]);
    let held: Claim | undefined;
    const begun = (claim: Claim) => {
      held = claim;
      return fn(claim);
    };
    // No one works on such an attempt: no answer comes by waiting.
    const waitMs = attempts.has(name) ? { waitMs: 0 } : {};
    try {
      return await onceward.runDetailed({ ...options, ...waitMs }, begun);
    } catch (error) {
      // A claim that is left to its lease, as one that is lost, aborts its signal.
      if (held?.signal.aborted) {
        attempts.set(name, held.attempt);
        for (const oldest of attempts.keys()) if (attempts.size > MAX_REMEMBERED) attempts.delete(oldest);
      }
      if (!(error instanceof InProgressError) || attempts.get(name) !== error.attempt) throw error;
      const { owner, attempt, claim, leaseExpiresAt: leaseExpiredAt } = error;
      throw new AmbiguousError({ owner, attempt, claim, leaseExpiredAt, checkpoint: undefined });
    }
  };
  return { run: onceward.run.bind(onceward), runDetailed: runDetailed as Onceward["runDetailed"] };
}
