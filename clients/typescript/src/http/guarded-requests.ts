import type { Claim } from "../run/held-claim.ts";

/** By namespace, the claims that a request is handled under. */
const claims = new WeakMap<object, Map<string, Claim>>();

/** Remembers the claim that a request is handled under, for guards that the request passes later. */
export function rememberClaim(request: object, namespace: string, claim: Claim): void {
  const known = claims.get(request);
  if (known === undefined) claims.set(request, new Map([[namespace, claim]]));
  else known.set(namespace, claim);
}

/** Returns the claim of a guard before this one, which the request is handled under already. */
export function findClaim(request: object, namespace: string): Claim | undefined {
  return claims.get(request)?.get(namespace);
}
