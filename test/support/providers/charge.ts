import {
  type Claim,
  didNotHappen,
  happened,
  NoEffectError,
  OutcomeUnknownError,
  type Resolve,
  stillOpen,
  unknown,
} from "../../../clients/typescript/src/index.ts";
import type { Charge, ProviderKind } from "./provider.ts";

/** A provider as a worker sees it. */
export interface ProviderAddress {
  readonly kind: ProviderKind;
  readonly url: string;
  /** How long its search lags. */
  readonly lagMs: number;
}

/** Longer than a provider takes between a request and its charge, on a machine that is busy. */
const LONGEST_CHARGE_MS = 1000;
/** When to ask again. */
const RETRY_AFTER_MS = 200;

/** Returns the key of an attempt's charge: its own where an earlier one's is cancelled. */
function keyOf({ kind }: ProviderAddress, claim: Claim, attempt = claim.attempt): string {
  return claim.deriveKey(kind === "cancel" ? `charge ${attempt}` : "charge");
}

async function post(provider: ProviderAddress, claim: Claim, signal: AbortSignal): Promise<Response> {
  const { key: operation, attempt } = claim;
  const body = { operation, key: keyOf(provider, claim), attempt, fencingToken: Number(claim.fencingToken) };
  return await fetch(`${provider.url}/charges`, { method: "POST", body: JSON.stringify(body), signal });
}

/** Charges under a claim. Returns the charge's id. @throws NoEffectError; OutcomeUnknownError; what `fetch` rejects with. */
export async function charge(
  provider: ProviderAddress,
  claim: Claim,
  signal = claim.signal,
): Promise<number> {
  const response = await post(provider, claim, signal);
  if (response.status === 503) throw new NoEffectError("The provider refused the charge.");
  const { id, status } = (await response.json()) as Charge;
  if (status !== "succeeded") throw new OutcomeUnknownError(`The charge is ${status}.`);
  return id;
}

/** Finds out what became of an earlier attempt's charge, at a provider of each kind that lets a caller do so. */
export const RESOLVE: Record<Exclude<ProviderKind, "no-key">, (provider: ProviderAddress) => Resolve> = {
  "stored-answer": (provider) => async (claim) => {
    const answer = await post(provider, claim, claim.signal);
    if (answer.status === 409) return stillOpen({ retryAfterMs: RETRY_AFTER_MS });
    return answer.ok ? happened(((await answer.json()) as Charge).id) : unknown();
  },
  "latest-status": (provider) => async (claim) => {
    const answer = await fetch(`${provider.url}/charges/${keyOf(provider, claim)}`);
    if (answer.status === 404) return didNotHappen();
    const { id, status } = (await answer.json()) as Charge;
    return status === "succeeded" ? happened(id) : stillOpen({ retryAfterMs: RETRY_AFTER_MS });
  },
  cancel: (provider) => async (claim) => {
    for (let attempt = 1; attempt < claim.attempt; attempt++) {
      const key = keyOf(provider, claim, attempt);
      const { ok } = await fetch(`${provider.url}/charges/${key}`, { method: "DELETE" });
      if (!ok) return unknown();
    }
    return didNotHappen();
  },
  search: (provider) => async (claim) => {
    const answer = await fetch(`${provider.url}/charges?key=${keyOf(provider, claim)}`);
    const [found] = (await answer.json()) as Charge[];
    if (found !== undefined) return happened(found.id);
    const isCertain = claim.msSinceEffectMayHaveBegun > provider.lagMs + LONGEST_CHARGE_MS;
    return isCertain ? didNotHappen() : stillOpen({ retryAfterMs: RETRY_AFTER_MS });
  },
};
