import { refusedField } from "../errors/violations.ts";
import type { Claim } from "../run/claim.ts";

/** By the signal that a tool gets: frameworks copy a tool's options, and keep the signal itself. */
const claims = new WeakMap<AbortSignal, Claim>();

/** Returns a signal for a tool's options, which aborts as `claim.signal` does, and by which `claimOf` finds the claim. */
export function signalOf(claim: Claim): AbortSignal {
  // A signal of its own: without a guard, `claim.signal` is that of the caller.
  const signal = AbortSignal.any([claim.signal]);
  claims.set(signal, claim);
  return signal;
}

/**
 * Returns the claim that a guarded tool runs under, from the options that its framework passes to it: the second argument of
 * `execute` (AI SDK), or the config (LangChain).
 *
 * @throws InvalidRequestError if the tool is not guarded.
 */
export function claimOf(options: object | undefined): Claim {
  const { abortSignal, signal = abortSignal }: { abortSignal?: AbortSignal; signal?: AbortSignal } =
    options ?? {};
  const claim = signal && claims.get(signal);
  if (claim === undefined) throw refusedField("options", "must be those of a guarded tool's call");
  return claim;
}
