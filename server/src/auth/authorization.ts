import { type ApiKey, ID_LENGTH, parseApiKey, SECRET_LENGTH } from "./api-key.ts";

/** What an `authorization` header holds, by its form: nothing of it is known to be true. */
export type Credential =
  | { readonly kind: "apiKey"; readonly apiKey: ApiKey }
  | { readonly kind: "token"; readonly token: string };

/** Tokens are at most this long: as much as fits into a request's headers beside others. */
export const MAX_TOKEN_LENGTH = 8192;
const SCHEME_LENGTH = "Bearer ".length;
/** One space: a header that is padded would be another spelling of the same credential. */
const BEARER = /^Bearer $/i;
const TOKEN = /^[\w.-]+$/;

/** How nearly every header with an API key is written, and where the parts of the key stand in it. */
const USUAL_START = "Bearer ow_";
const ID_AT = USUAL_START.length;
const SECRET_AT = ID_AT + ID_LENGTH + 1;
const USUAL_LENGTH = SECRET_AT + SECRET_LENGTH;

/**
 * Reads an API key by the places of its parts alone, in a sixth of the time that `parseAuthorization` takes: it may be no key at
 * all, and is good only for being compared with one that is known. Undefined: `parseAuthorization` tells.
 */
export function presumeApiKey(header: string): ApiKey | undefined {
  if (header.length !== USUAL_LENGTH || !header.startsWith(USUAL_START)) return undefined;
  if (header[SECRET_AT - 1] !== "_") return undefined;
  return { id: header.slice(ID_AT, SECRET_AT - 1), secret: header.slice(SECRET_AT) };
}

/**
 * Reads a credential: `Bearer`, one space, and an API key or a token, with nothing before or after it. Undefined if the header
 * has another form, or is too long.
 */
export function parseAuthorization(header: string): Credential | undefined {
  if (header.length > SCHEME_LENGTH + MAX_TOKEN_LENGTH) return undefined;
  if (!BEARER.test(header.slice(0, SCHEME_LENGTH))) return undefined;
  const text = header.slice(SCHEME_LENGTH);
  const apiKey = parseApiKey(text);
  if (apiKey !== undefined) return { kind: "apiKey", apiKey };
  return TOKEN.test(text) ? { kind: "token", token: text } : undefined;
}
