import type { EncryptionKey, Keyring } from "../config/keyring.ts";
import { type EntryFormat, FORMAT, signedFormat } from "../records/replay/entry-format.ts";
import { deriveKey, open, seal } from "./seal.ts";

/**
 * Returns the format of a replica: encrypted if there is a current key, and else in plain form with a digest in
 * Redis that `secret` keys. An entry of the other format, or under a key that is not configured, is refused, so
 * that Postgres answers in its place.
 */
export function entryFormat(secret: string, keyring: Keyring): EntryFormat {
  return keyring.current === undefined ? signedFormat(secret) : encryptedFormat(keyring, keyring.current);
}

/** An encrypted entry begins with the id of its key. */
const KEY_ID_BYTES = 2;

/** The same in memory and in Redis, so that a completion is encrypted once. */
function encryptedFormat(keyring: Keyring, current: EncryptionKey): EntryFormat {
  return {
    hold(name, completion) {
      const sealed = seal(deriveKey(current, "entry", name), completion, placeOf(name));
      const held = Buffer.allocUnsafe(KEY_ID_BYTES + sealed.byteLength);
      held.writeUInt16BE(current.id);
      held.set(sealed, KEY_ID_BYTES);
      return held;
    },
    reveal(name, held) {
      const key = held.byteLength < KEY_ID_BYTES ? undefined : keyring.find(held.readUInt16BE());
      return key && open(deriveKey(key, "entry", name), held.subarray(KEY_ID_BYTES), placeOf(name));
    },
    store: (_, held) => held,
    load: (_, entry) => entry,
  };
}

/** Returns the additional authenticated data of an entry: its format and its name. */
function placeOf(name: string): string {
  return `${FORMAT}:${name}`;
}
