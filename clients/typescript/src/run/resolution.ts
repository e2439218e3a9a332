import { refusedField } from "../errors/violations.ts";
import { MAX_TIMER_MS } from "../wire/limits.ts";
import type { Claim } from "./claim.ts";

/** What became of the effect of an earlier attempt, as `resolve` found out: made by one of the functions of this module. */
export type Resolution =
  | { readonly kind: "happened"; readonly value: unknown }
  | { readonly kind: "did-not-happen" }
  | { readonly kind: "still-open"; readonly retryAfterMs: number }
  | { readonly kind: "unknown" };

/** Each search claims the key and asks a provider. */
const MIN_RETRY_AFTER_MS = 100;

/** Says that the effect happened: the value is stored and returned, as if the function had returned it, which does not run. */
export function happened(value: unknown): Resolution {
  return { kind: "happened", value };
}

/** Says that the effect did not happen, and will not: the function runs. */
export function didNotHappen(): Resolution {
  return { kind: "did-not-happen" };
}

/**
 * Says that it will be known later: the record stays as it is, and the run asks again after this time, at least 100 ms, if it may wait
 * so long, or throws InProgressError with it.
 *
 * @throws InvalidRequestError.
 */
export function stillOpen({ retryAfterMs }: { readonly retryAfterMs: number }): Resolution {
  if (!Number.isSafeInteger(retryAfterMs) || retryAfterMs < 0 || retryAfterMs > MAX_TIMER_MS)
    throw refusedField("retryAfterMs", `must be a whole number of milliseconds, 0-${MAX_TIMER_MS}`);
  return { kind: "still-open", retryAfterMs: Math.max(MIN_RETRY_AFTER_MS, retryAfterMs) };
}

/** Says that it can't be found out: the record stays as it is, and the run throws AmbiguousError. An error means the same. */
export function unknown(): Resolution {
  return { kind: "unknown" };
}

/** The claim under which `resolve` looks. */
export interface UnresolvedClaim extends Claim {
  /**
   * Milliseconds since the lease of the earlier attempt ended, by the service's clock: an effect that it had began before then. With a
   * `claimId`, which may continue a claim that looked before and whose effect then began: milliseconds since this run began.
   * A provider whose search lags, or that takes requests late, may not show it for some time after.
   */
  readonly msSinceEffectMayHaveBegun: number;
}

/** Finds out what became of the effect of an earlier attempt; see `RunOptions.resolve`. */
export type Resolve = (claim: UnresolvedClaim) => Resolution | Promise<Resolution>;

/** Does so with what the operation was made of: the input, message, request or call that an adapter got. */
export type ResolveFor<Subject> = (
  claim: UnresolvedClaim,
  subject: Subject,
) => Resolution | Promise<Resolution>;

/** Returns the function for one subject; undefined without one. */
export function resolveFor<Subject>(
  subject: Subject,
  resolve: ResolveFor<Subject> | undefined,
): Resolve | undefined {
  return resolve && ((claim) => resolve(claim, subject));
}
