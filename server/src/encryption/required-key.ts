import { CommandError } from "../commands/host.ts";
import type { Config } from "../config/config.ts";
import { NO_KEYS, parseKeyring } from "../config/keyring.ts";
import type { Runner } from "../database/pool.ts";
import { readEncryptionPass } from "./encryption-pass.ts";

/**
 * Refuses to continue without the key that the newest pass encrypts under, unless `none` is the first entry of the list: values
 * would be stored in plain form, or under a key that the other replicas lack.
 *
 * @throws CommandError that names the variable.
 */
export async function requireKeyOfPass(
  runner: Runner,
  { ONCEWARD_ENCRYPTION_KEYS: keys = "" }: Config,
): Promise<void> {
  const { current, find } = parseKeyring(keys) ?? NO_KEYS;
  const isPlainMeant = keys !== "" && current === undefined;
  const keyId = (await readEncryptionPass(runner))?.keyId ?? undefined;
  if (isPlainMeant || keyId === undefined || find(keyId) !== undefined) return;
  throw new CommandError(
    `ONCEWARD_ENCRYPTION_KEYS lacks key ${keyId}, under which this installation's results are encrypted: add it, or begin the list with none if you mean to stop encryption: deploy/runbook.md#records_unreadable`,
  );
}
