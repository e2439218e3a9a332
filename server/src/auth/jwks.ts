import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from "jose";
import { Refusal } from "../domain/refusal.ts";

/** The keys that an issuer publishes, as last heard of. */
export interface Jwks {
  /**
   * Finds the key that a token is signed with. The issuer is asked anew for a key that isn't known, though no more often
   * than once in a cooldown. Keys that are known go on working while the issuer doesn't answer.
   *
   * @throws Refusal ISSUER_UNAVAILABLE for a key that isn't known while the issuer doesn't answer.
   * @throws errors.JOSEError if the issuer has no such key, or several that fit.
   */
  readonly keyFor: JWTVerifyGetKey;
  /**
   * Another object for other keys: what was found true with the ones before has to be looked at again. Whoever asks keeps
   * them young, as `keyFor` does.
   */
  current(): object | undefined;
  /** Asks in the background, so that the first token needn't wait. */
  warm(): void;
}

export interface JwksOptions {
  readonly url: string;
  /** Tokens with made-up key ids must not become a flood of requests to the issuer. */
  readonly cooldownMs: number;
  /** Told why the issuer could not be asked; at most once in a cooldown. */
  readonly onFailed: (error: unknown) => void;
}

/** A key that the issuer has withdrawn is unknown here after this, or just after the first token that comes then. */
const REFRESH_AFTER_MS = 5 * 60_000;
const TIMEOUT_MS = 5000;
/** Some hundred keys. */
const MAX_BYTES = 256 * 1024;

type Find = ReturnType<typeof createLocalJWKSet>;
type FindParameters = Parameters<Find>;

interface KeySet {
  /** As it was published. */
  readonly text: string;
  readonly find: Find;
}

/** @see Jwks */
export function createJwks({ url, cooldownMs, onFailed }: JwksOptions): Jwks {
  let keys: KeySet | undefined;
  let askedAtMs = Number.NEGATIVE_INFINITY;
  let isAnswering = true;
  let asking: Promise<void> | undefined;

  async function ask(): Promise<void> {
    askedAtMs = performance.now();
    try {
      const text = await fetchText(url);
      if (text !== keys?.text) keys = { text, find: createLocalJWKSet(JSON.parse(text) as JSONWebKeySet) };
      isAnswering = true;
    } catch (error) {
      isAnswering = false;
      onFailed(error);
    }
  }

  /** Resolves once the issuer has answered or not; at once, if it was asked a moment ago. */
  async function refresh(): Promise<void> {
    if (asking === undefined && performance.now() - askedAtMs < cooldownMs) return;
    asking ??= ask().finally(() => {
      asking = undefined;
    });
    await asking;
  }

  function refreshIfOld(): void {
    if (performance.now() - askedAtMs >= REFRESH_AFTER_MS) void refresh();
  }

  /** Undefined: none of the keys that are known fits. */
  async function find(...token: FindParameters): Promise<Awaited<ReturnType<Find>> | undefined> {
    try {
      return await keys?.find(...token);
    } catch (error) {
      if (error instanceof errors.JWKSNoMatchingKey) return undefined;
      throw error;
    }
  }

  return {
    async keyFor(header, token) {
      const known = await find(header, token);
      if (known !== undefined) {
        refreshIfOld();
        return known;
      }
      await refresh();
      const found = await find(header, token);
      if (found !== undefined) return found;
      if (isAnswering) throw new errors.JWKSNoMatchingKey();
      const message = "The token's key is not known, and its issuer does not answer.";
      throw new Refusal("ISSUER_UNAVAILABLE", message, { retryAfterMs: cooldownMs });
    },
    current() {
      refreshIfOld();
      return keys;
    },
    warm: () => void refresh(),
  };
}

/** @throws if the answer is no 200, is too large, or does not come in time. */
async function fetchText(url: string): Promise<string> {
  const response = await fetch(url, {
    headers: { accept: "application/jwk-set+json, application/json" },
    // Where the keys are is configured; nobody else has a say in it.
    redirect: "error",
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  if (response.status !== 200) {
    await response.body?.cancel();
    throw new Error(`${url} answered with status ${response.status}`);
  }
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > MAX_BYTES) throw new Error(`${url} answered with more than ${MAX_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}
