import { AsyncLocalStorage } from "node:async_hooks";
import { refusedField } from "../errors/violations.ts";
import type { Claim } from "../run/claim.ts";

const claims = new AsyncLocalStorage<Claim>();

/** Runs a function within which `currentClaim` returns the claim. */
export function withClaim<T>(claim: Claim, fn: () => T): T {
  return claims.run(claim, fn);
}

/** Returns the claim that the current activity runs under. @throws InvalidRequestError outside a guarded activity. */
export function currentClaim(): Claim {
  const claim = claims.getStore();
  if (claim === undefined) throw refusedField("currentClaim", "must be called within a guarded activity");
  return claim;
}
