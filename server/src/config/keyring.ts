import { createSecretKey, type KeyObject } from "node:crypto";

/** A key of 256 bits, from which the keys of single records and entries are derived. */
export interface EncryptionKey {
  /** Stored beside everything that the key encrypts. */
  readonly id: number;
  readonly secret: KeyObject;
}

/** The configured keys. */
export type Keyring = ReturnType<typeof createKeyring>;

/** The keyring of a server without encryption. */
export const NO_KEYS = createKeyring(undefined, []);

/** AES-256. */
const KEY_BYTES = 32;
/** As a smallint holds them. */
const MAX_ID = 32_767;
/** A rotation needs two. */
const MAX_KEYS = 16;
/** In place of the first key: nothing is encrypted, and the keys after it only decrypt. */
const NO_CURRENT = "none";
const KEY = /^(\d{1,5}):([A-Za-z0-9+/]{43}=)$/;

/**
 * Reads a list such as `2:BASE64,1:BASE64`: ids from 1 to 32767, each with its key of 32 bytes in base64. The
 * first key encrypts, and all decrypt; `none` in place of the first key stops encryption.
 *
 * @returns undefined if the text is malformed, or holds an id twice.
 */
export function parseKeyring(text: string): Keyring | undefined {
  const parts = text.split(",").map((part) => part.trim());
  const encrypts = parts[0] !== NO_CURRENT;
  const keys = (encrypts ? parts : parts.slice(1)).map(parseKey);
  if (keys.length === 0 || keys.length > MAX_KEYS || keys.includes(undefined)) return undefined;
  const known = keys as EncryptionKey[];
  if (new Set(known.map(({ id }) => id)).size < known.length) return undefined;
  return createKeyring(encrypts ? known[0] : undefined, known);
}

function parseKey(text: string): EncryptionKey | undefined {
  const [, digits, base64 = ""] = KEY.exec(text) ?? [];
  const id = Number(digits);
  const bytes = Buffer.from(base64, "base64");
  if (!(id >= 1 && id <= MAX_ID) || bytes.byteLength !== KEY_BYTES) return undefined;
  return { id, secret: createSecretKey(bytes) };
}

function createKeyring(current: EncryptionKey | undefined, keys: readonly EncryptionKey[]) {
  const byId = new Map(keys.map((key) => [key.id, key]));
  return {
    /** The key that encrypts. Undefined: new values are stored in plain form. */
    current,
    /** Ids of the keys that decrypt, the current one included. */
    ids: [...byId.keys()],
    /** Returns the key with an id, if it is configured. */
    find: (id: number) => byId.get(id),
  };
}
