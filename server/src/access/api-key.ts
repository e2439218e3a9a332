import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { Refusal } from "../domain/refusal.ts";

/**
 * An API key, written `ow_<id>_<secret>`. Secret scanners find it by the prefix, the server finds its row by
 * the id, and the secret is 256 random bits.
 */
export interface ApiKey {
  readonly id: string;
  readonly secret: string;
}

const FORMAT = /^ow_([a-z0-9]{16})_([A-Za-z0-9_-]{43})$/;
const ID_BYTES = 8;
const SECRET_BYTES = 32;
/** Characters of an id, in hexadecimal. */
export const ID_LENGTH = 16;
/** Characters of a secret, in base64url. */
export const SECRET_LENGTH = 43;

/** Generates a random key. */
export function generateApiKey(): ApiKey {
  return {
    id: randomBytes(ID_BYTES).toString("hex"),
    secret: randomBytes(SECRET_BYTES).toString("base64url"),
  };
}

/** Returns the text of a key, which its owner receives once. */
export function formatApiKey({ id, secret }: ApiKey): string {
  return `ow_${id}_${secret}`;
}

/** Parses the text of a key; returns undefined if it is malformed. */
export function parseApiKey(text: string): ApiKey | undefined {
  const [, id, secret] = FORMAT.exec(text) ?? [];
  return id === undefined || secret === undefined ? undefined : { id, secret };
}

/**
 * Returns the digest that the database stores of a secret: HMAC-SHA256 under the deployment's pepper, so that
 * a stolen table is useless without the pepper.
 */
export function digestSecret(secret: string, pepper: string): Buffer {
  return createHmac("sha256", pepper).update(secret).digest();
}

/** Compares two digests in a time that depends only on their length. */
export function sameDigest(a: Uint8Array, b: Uint8Array): boolean {
  return a.byteLength === b.byteLength && timingSafeEqual(a, b);
}

/** A credential of an `authorization` header, parsed but not verified. */
export type Credential =
  | { readonly kind: "apiKey"; readonly apiKey: ApiKey }
  | { readonly kind: "token"; readonly token: string };

/** Maximum length of a token: fits into a request's headers beside the others. */
export const MAX_TOKEN_LENGTH = 8192;
const SCHEME_LENGTH = "Bearer ".length;
/** Exactly one space: padding would allow several spellings of one credential. */
const BEARER = /^Bearer $/i;
/** The compact form of a signed token: https://www.rfc-editor.org/rfc/rfc7515#section-3.1 */
const TOKEN = /^[\w-]+\.[\w-]+\.[\w-]+$/;

/**
 * Parses a credential: `Bearer`, one space, and an API key or a token, with nothing before or after it.
 *
 * @throws Refusal CREDENTIAL_INVALID that says what is wrong with the form, and repeats nothing of the header.
 */
export function parseAuthorization(header: string): Credential {
  if (!BEARER.test(header.slice(0, SCHEME_LENGTH)))
    throw malformedCredential("The credential must follow the scheme Bearer and one space.");
  const text = header.slice(SCHEME_LENGTH);
  if (text.length > MAX_TOKEN_LENGTH)
    throw malformedCredential(
      `A credential has at most ${MAX_TOKEN_LENGTH} characters, this has ${text.length}.`,
    );
  const apiKey = parseApiKey(text);
  if (apiKey !== undefined) return { kind: "apiKey", apiKey };
  if (TOKEN.test(text)) return { kind: "token", token: text };
  throw notAnApiKey(text);
}

/** Returns the refusal of a text that does not have the form of an API key. */
export function notAnApiKey({ length }: string): Refusal {
  const form = `ow_<${ID_LENGTH} characters>_<${SECRET_LENGTH} characters>`;
  return malformedCredential(
    `The credential of ${length} characters does not have the form of an API key, ${form}.`,
  );
}

/** Its text may depend on the form of a credential, and on nothing else: who guesses learns nothing of stored ones. */
function malformedCredential(message: string): Refusal {
  return new Refusal("CREDENTIAL_INVALID", message);
}
