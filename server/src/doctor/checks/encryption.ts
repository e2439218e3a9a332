import { NO_KEYS, parseKeyring } from "../../config/keyring.ts";
import { readEncryptionPass } from "../../encryption/encryption-pass.ts";
import type { Check } from "../findings.ts";

/**
 * Looks whether stored values need a key that this configuration lacks, by what the background task has seen: `encryption-status`
 * reads all records instead.
 */
export const encryptionKeysCheck: Check = {
  name: "encryption_keys",
  async examine({ config, runner }) {
    const pass = await readEncryptionPass(runner);
    if (pass === undefined) return [];
    const { keyId, unreadable, startedAtMs } = pass;
    const { find } = parseKeyring(config.ONCEWARD_ENCRYPTION_KEYS ?? "") ?? NO_KEYS;
    if (keyId !== null && find(keyId) === undefined) {
      const summary = `ONCEWARD_ENCRYPTION_KEYS lacks key ${keyId}, under which records are encrypted.`;
      return [{ id: "records_unreadable", summary }];
    }
    if (unreadable === 0) return [];
    const summary = `The pass over all records of ${new Date(startedAtMs).toISOString()} could not decrypt ${unreadable} of them.`;
    return [{ id: "records_unreadable", summary }];
  },
};
