import { type ApiKey, ID_LENGTH, parseApiKey, SECRET_LENGTH } from "./api-key.ts";

/** A credential of an `authorization` header, parsed but not verified. */
export type Credential =
  | { readonly kind: "apiKey"; readonly apiKey: ApiKey }
  | { readonly kind: "token"; readonly token: string };

/** Maximum length of a token: fits into a request's headers beside the others. */
export const MAX_TOKEN_LENGTH = 8192;
const SCHEME_LENGTH = "Bearer ".length;
/** Exactly one space: padding would allow several spellings of one credential. */
const BEARER = /^Bearer $/i;
const TOKEN = /^[\w.-]+$/;

/** The usual spelling of a header with an API key, and the offsets of the key's parts in it. */
const USUAL_START = "Bearer ow_";
const ID_AT = USUAL_START.length;
const SECRET_AT = ID_AT + ID_LENGTH + 1;
const USUAL_LENGTH = SECRET_AT + SECRET_LENGTH;

/**
 * Cuts an API key out of a header by the offsets of its parts, in a sixth of the time of
 * `parseAuthorization`. The result is not validated: use it only to look up and compare a known key. Returns
 * undefined if the header has another form.
 */
export function sliceApiKey(header: string): ApiKey | undefined {
  if (header.length !== USUAL_LENGTH || !header.startsWith(USUAL_START)) return undefined;
  if (header[SECRET_AT - 1] !== "_") return undefined;
  return { id: header.slice(ID_AT, SECRET_AT - 1), secret: header.slice(SECRET_AT) };
}

/**
 * Parses a credential: `Bearer`, one space, and an API key or a token, with nothing before or after it.
 * Returns undefined if the header has another form or is too long.
 */
export function parseAuthorization(header: string): Credential | undefined {
  if (header.length > SCHEME_LENGTH + MAX_TOKEN_LENGTH) return undefined;
  if (!BEARER.test(header.slice(0, SCHEME_LENGTH))) return undefined;
  const text = header.slice(SCHEME_LENGTH);
  const apiKey = parseApiKey(text);
  if (apiKey !== undefined) return { kind: "apiKey", apiKey };
  return TOKEN.test(text) ? { kind: "token", token: text } : undefined;
}
