import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";

/**
 * An API key as its owner holds it: `ow_<key id>_<secret>`. The prefix lets secret scanners find it, the id finds the
 * row, and the secret is 256 random bits.
 */
export interface ApiKey {
  readonly id: string;
  readonly secret: string;
}

const FORMAT = /^ow_([a-z0-9]{16})_([A-Za-z0-9_-]{43})$/;
const ID_BYTES = 8;
const SECRET_BYTES = 32;
/** Characters of an id, which is hexadecimal. */
export const ID_LENGTH = 16;
/** Characters of a secret, as base64url has it. */
export const SECRET_LENGTH = 43;

/** Makes a key that nobody has. */
export function generateApiKey(): ApiKey {
  return {
    id: randomBytes(ID_BYTES).toString("hex"),
    secret: randomBytes(SECRET_BYTES).toString("base64url"),
  };
}

/** As it is given to its owner, once. */
export function formatApiKey({ id, secret }: ApiKey): string {
  return `ow_${id}_${secret}`;
}

/** Undefined if the text isn't of the format. */
export function parseApiKey(text: string): ApiKey | undefined {
  const [, id, secret] = FORMAT.exec(text) ?? [];
  return id === undefined || secret === undefined ? undefined : { id, secret };
}

/** What is stored of a key: HMAC-SHA256 of its secret under the deployment's pepper, so that a stolen table is no use. */
export function digestSecret(secret: string, pepper: string): Buffer {
  return createHmac("sha256", pepper).update(secret).digest();
}

/** Compares in constant time, for a length. */
export function sameDigest(a: Uint8Array, b: Uint8Array): boolean {
  return a.byteLength === b.byteLength && timingSafeEqual(a, b);
}
