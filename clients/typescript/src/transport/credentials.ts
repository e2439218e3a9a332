import { CODE } from "../errors/connect-error.ts";
import { OncewardError } from "../errors/errors.ts";
import { errorFromCall } from "../errors/mapping.ts";
import { checkFunction, refusedField } from "../errors/violations.ts";

/** A token that the service's issuer signed, and when it expires. */
export interface AccessToken {
  /** The token, without "Bearer". */
  readonly token: string;
  /** By this process's clock. */
  readonly expiresAt: Date;
}

/**
 * Returns a token, now or later. A text alone is enough for a JSON Web Token, whose `exp` says when it expires; any other
 * text is used until the service refuses it.
 */
export type TokenSource = () => string | AccessToken | Promise<string | AccessToken>;

/** The credential of every call: an API key, or a source of tokens. */
// The key is last: if both are missing, TypeScript's message names the last.
export type CredentialOptions =
  | {
      /**
       * Called for a token before the first call, again shortly before the token expires, while calls still use it, and
       * when the service refuses it (CREDENTIAL_INVALID), or a proxy (UNAUTHENTICATED): then the call is made once more. An error, or no answer within
       * 5,000 ms, fails the calls that need a token with TOKEN_UNAVAILABLE, which `run` retries.
       */
      readonly token: TokenSource;
      /** Left out. Default: none. */
      readonly apiKey?: undefined;
    }
  | {
      /**
       * `ow_…`, the API key of a credential with the role CALLER. Undefined, such as an unset environment variable,
       * is refused like any invalid key.
       */
      readonly apiKey: string | undefined;
      /** Left out. Default: none. */
      readonly token?: undefined;
    };

/** Makes calls with a credential. */
export interface Credential {
  /** Makes a call with an authorization header; again with another one if the service refuses a token. */
  use<T>(call: (authorization: string) => Promise<T>): Promise<T>;
}

/** Returns the credential of a client's options. @throws InvalidRequestError for a key that can't be in a header. */
export function credentialOf(options: CredentialOptions): Credential {
  return credentialWith(options, sharedWhilePending);
}

/**
 * Returns a credential whose calls share a token, but never wait for the source's answer to another call: for runtimes
 * that end a request which waits for another one's I/O. While there is no valid token, and during a renewal, each call asks
 * the source separately. @throws InvalidRequestError as `credentialOf`.
 */
export function unsharedCredentialOf(options: CredentialOptions): Credential {
  return credentialWith(options, (renew) => renew);
}

function credentialWith({ apiKey, token }: CredentialOptions, share: Share): Credential {
  if (token !== undefined) {
    if (apiKey !== undefined) throw refusedField("token", "must not be set together with apiKey");
    checkFunction("token", token);
    return new RenewedToken(token, share);
  }
  // The message never shows the key: even an invalid one is a secret.
  if (!isHeaderValue(apiKey)) {
    throw refusedField("apiKey", "must be an API key (ow_…), visible ASCII without spaces");
  }
  const authorization = `Bearer ${apiKey}`;
  return { use: (call) => call(authorization) };
}

function isHeaderValue(value: unknown): value is string {
  return typeof value === "string" && /^[\x21-\x7e]+$/.test(value);
}

/** A source that takes longer is not reached: the calls that wait for it have timeouts of their own. */
const SOURCE_TIMEOUT_MS = 5000;
/** A token is renewed in the last fifth of its life, and at most this long before its end. */
const MAX_EARLY_MS = 60_000;
const EARLY_FRACTION = 0.2;
/** How long after a failed renewal the next one is tried, while the token is still valid. */
const RETRY_MS = 5000;

interface Held {
  readonly authorization: string;
  readonly expiresAtMs: number;
  readonly renewAtMs: number;
}

/** Returns the function by which calls get a new token: with or without one answer for all of them. */
type Share = (renew: () => Promise<Held>) => () => Promise<Held>;

/** Asks once for all calls that wait. */
function sharedWhilePending(renew: () => Promise<Held>): () => Promise<Held> {
  let pending: Promise<Held> | undefined;
  return () => {
    pending ??= renew().finally(() => {
      pending = undefined;
    });
    return pending;
  };
}

/** A token that is renewed before it expires. No timer: only calls renew it, and an idle process does not. */
class RenewedToken implements Credential {
  /** Calls the source. Rejects with OncewardError TOKEN_UNAVAILABLE. */
  readonly #renew: () => Promise<Held>;
  #held: Held | undefined;
  #notBeforeMs = Number.NEGATIVE_INFINITY;

  constructor(source: TokenSource, share: Share) {
    this.#renew = share(async () => {
      this.#held = await fetchToken(source);
      return this.#held;
    });
  }

  async use<T>(call: (authorization: string) => Promise<T>): Promise<T> {
    const held = await this.#current();
    try {
      return await call(held.authorization);
    } catch (cause) {
      if (!isRefused(errorFromCall(cause))) throw cause;
      // Another call may have renewed it in the meantime.
      const other = this.#held === held || this.#held === undefined ? await this.#renew() : this.#held;
      if (other.authorization === held.authorization) throw cause;
      return await call(other.authorization);
    }
  }

  #current(): Held | Promise<Held> {
    const held = this.#held;
    const nowMs = Date.now();
    if (held === undefined || nowMs >= held.expiresAtMs) return this.#renew();
    if (nowMs >= held.renewAtMs && nowMs >= this.#notBeforeMs) {
      // The token is still valid: its calls see no failure of the source.
      this.#renew().catch(() => {
        this.#notBeforeMs = Date.now() + RETRY_MS;
      });
    }
    return held;
  }
}

/** Whether a call was refused for its token, by the service or by a proxy that checks tokens. */
function isRefused({ reason, code }: OncewardError): boolean {
  return reason === "CREDENTIAL_INVALID" || (reason === "NO_ANSWER" && code === CODE.UNAUTHENTICATED);
}

async function fetchToken(source: TokenSource): Promise<Held> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    const message = `token() did not answer within ${SOURCE_TIMEOUT_MS} ms`;
    timer = setTimeout(() => reject(new Error(message)), SOURCE_TIMEOUT_MS);
  });
  try {
    return heldOf(await Promise.race([(async () => await source())(), late]));
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : `${cause}`;
    throw new OncewardError("TOKEN_UNAVAILABLE", `There is no token: ${why}`, {
      code: CODE.UNAVAILABLE,
      cause,
    });
  } finally {
    clearTimeout(timer);
  }
}

/** @throws TypeError, which does not show the token. */
function heldOf(answer: string | AccessToken): Held {
  const { token, expiresAt } = typeof answer === "string" ? { token: answer, expiresAt: undefined } : answer;
  if (!isHeaderValue(token)) throw new TypeError("token() must return visible ASCII without spaces");
  const nowMs = Date.now();
  const expiresAtMs = expiresAt?.getTime() ?? expiryOfJwt(token);
  const earlyMs = Math.min(MAX_EARLY_MS, Math.max(0, expiresAtMs - nowMs) * EARLY_FRACTION);
  return { authorization: `Bearer ${token}`, expiresAtMs, renewAtMs: expiresAtMs - earlyMs };
}

/** Returns the `exp` of a JSON Web Token (RFC 7519) in milliseconds; infinity for any other text. */
function expiryOfJwt(token: string): number {
  const [, payload = ""] = token.split(".");
  try {
    const { exp } = JSON.parse(atob(payload.replaceAll("-", "+").replaceAll("_", "/")));
    return typeof exp === "number" ? exp * 1000 : Number.POSITIVE_INFINITY;
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}
