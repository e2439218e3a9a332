import {
  createLocalJWKSet,
  createRemoteJWKSet,
  customFetch,
  type FetchImplementation,
  type JWKSCacheInput,
  type JWTVerifyGetKey,
  jwksCache,
} from "jose";
import { Refusal } from "../domain/refusal.ts";
import { boundedFetch } from "./bounded-fetch.ts";

/** The public keys of an issuer, as it last published them. */
export type Jwks = ReturnType<typeof createJwks>;

export interface JwksOptions {
  readonly url: string;
  /** Bounds the requests to the issuer that tokens with made-up key ids can cause, in milliseconds. */
  readonly cooldownMs: number;
  /** Called with the error of each failed fetch; at most once in a cooldown. */
  readonly onFailed: (error: unknown) => void;
}

/**
 * A key that the issuer withdrew is unknown here after this time, or just after the first token that follows
 * it.
 */
const REFRESH_AFTER_MS = 5 * 60_000;
const TIMEOUT_MS = 5000;
/** Some hundred keys. */
const MAX_BYTES = 256 * 1024;

/**
 * Wraps `createRemoteJWKSet` of jose, which fetches, parses and selects keys, shares one fetch among
 * concurrent tokens and limits fetches after a success. Three promises of ours need more: a limit of fetches
 * after a failure, a bound of the response's size, and known keys that outlive their age while the issuer is
 * down.
 */
export function createJwks({ url, cooldownMs, onFailed }: JwksOptions) {
  const cache: { jwks?: unknown } = {};
  let fetchedAtMs = Number.NEGATIVE_INFINITY;
  let failedAtMs = Number.NEGATIVE_INFINITY;

  const fetchWithCooldown: FetchImplementation = async (...request) => {
    const nowMs = performance.now();
    if (nowMs - failedAtMs < cooldownMs) throw issuerUnavailable(cooldownMs);
    fetchedAtMs = nowMs;
    try {
      return await fetchKeys(...request);
    } catch (error) {
      failedAtMs = performance.now();
      onFailed(error);
      throw issuerUnavailable(cooldownMs);
    }
  };

  const keys = createRemoteJWKSet(new URL(url), {
    timeoutDuration: TIMEOUT_MS,
    cooldownDuration: cooldownMs,
    // With a finite age, jose refuses known keys while the issuer is down. `refreshIfOld` replaces it.
    cacheMaxAge: Number.POSITIVE_INFINITY,
    // Assigned by jose together with its own copy, so that `current` never runs ahead of the keys in use.
    [jwksCache]: cache as JWKSCacheInput,
    [customFetch]: fetchWithCooldown,
  });

  /** Never rejects: `fetchWithCooldown` reports errors. */
  function refresh(): void {
    keys.reload().catch(() => {});
  }

  function refreshIfOld(): void {
    if (performance.now() - fetchedAtMs >= REFRESH_AFTER_MS) refresh();
  }

  let latest: unknown;
  let latestText: string | undefined;
  let version: object | undefined;
  return {
    /**
     * Finds the key that signed a token. Fetches the keys again for an unknown key, at most once in a cooldown.
     * Known keys keep working while the issuer does not answer.
     *
     * @throws Refusal ISSUER_UNAVAILABLE for an unknown key while the issuer does not answer.
     * @throws errors.JOSEError if the issuer publishes no such key, or several that match.
     */
    keyFor(...[header, token]: Parameters<JWTVerifyGetKey>) {
      refreshIfOld();
      return keys(header, token);
    },
    /**
     * Returns an object that stays the same while the keys stay the same: a token that was verified under
     * another object must be verified again. Undefined before the first fetch. Like `keyFor`, refreshes old
     * keys in the background.
     */
    current(): object | undefined {
      refreshIfOld();
      if (cache.jwks !== latest) {
        latest = cache.jwks;
        const text = JSON.stringify(latest);
        if (text !== latestText) version = {};
        latestText = text;
      }
      return version;
    },
    /** Fetches the keys in the background, so that the first token does not wait. */
    warm: refresh,
  };
}

function issuerUnavailable(retryAfterMs: number): Refusal {
  const message = "The token's key is not known, and its issuer does not answer.";
  return new Refusal("ISSUER_UNAVAILABLE", message, { retryAfterMs });
}

/**
 * @throws if the response is not 200, is too large, is not a key set or does not arrive in time. Redirects
 * are not followed.
 */
async function fetchKeys(...[url, request]: Parameters<FetchImplementation>): Promise<Response> {
  const response = await boundedFetch(url, request, MAX_BYTES);
  if (response.status !== 200) throw new Error(`${url} answered with status ${response.status}`);
  const text = await response.text();
  // Fails here rather than in jose, so that a malformed key set counts as a failed fetch.
  createLocalJWKSet(JSON.parse(text));
  return new Response(text);
}
