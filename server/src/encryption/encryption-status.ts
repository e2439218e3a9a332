import { readArguments } from "../commands/arguments.ts";
import { CommandError, type Host } from "../commands/host.ts";
import { requireSchema } from "../commands/schema.ts";
import { withPool } from "../commands/with-pool.ts";
import { readConfig } from "../config/config.ts";
import { type Keyring, NO_KEYS, parseKeyring } from "../config/keyring.ts";
import { type PassProgress, readEncryptionPass } from "./encryption-pass.ts";
import { countKeyUsage, type KeyUsage } from "./key-usage.ts";

/**
 * `encryption-status`: prints how many results and checkpoints are stored under each encryption key and in plain
 * form, which keys are configured, and how far the background task has come. Reads all records.
 */
export async function encryptionStatus(host: Host): Promise<void> {
  readArguments(host.args, {});
  const config = readConfig(host.env);
  await requireSchema(config);
  const keyring = parseKeyring(config.ONCEWARD_ENCRYPTION_KEYS ?? "") ?? NO_KEYS;
  await withPool(config, async (pool) => {
    // The pass is read first: values that it stores in between are counted where they are then.
    const pass = await readEncryptionPass(pool);
    const usages = await countKeyUsage(pool);
    for (const line of statusLines(keyring, usages)) host.print(line);
    host.print(passLine(pass));
    requireKeysOf(usages, keyring);
  });
}

/** @throws CommandError if values need a key that is not configured, or wait for the first key in plain form. */
function requireKeysOf(usages: readonly KeyUsage[], keyring: Keyring): void {
  const missing = usages.filter(({ keyId }) => keyId !== null && keyring.find(keyId) === undefined);
  if (missing.length > 0) {
    const ids = missing.map(({ keyId }) => keyId).join(", ");
    throw new CommandError(
      `ONCEWARD_ENCRYPTION_KEYS lacks keys that stored values need: ${ids}. Calls that read them fail.`,
    );
  }
  const plain = usages.find(({ keyId }) => keyId === null);
  if (plain === undefined || keyring.current === undefined) return;
  const values = plain.results + plain.checkpoints;
  throw new CommandError(
    `${values} values are in plain form: the background task encrypts them in its next pass, a day later at most.`,
  );
}

/** Returns a line for each key that is configured or in use, and for plain form. */
function statusLines(keyring: Keyring, usages: readonly KeyUsage[]): readonly string[] {
  const used = new Map(usages.map((usage) => [usage.keyId, usage]));
  const keyIds = [...new Set([...used.keys(), ...keyring.ids, null])].sort((a, b) => (a ?? 0) - (b ?? 0));
  return keyIds.map((keyId) => {
    const { results, checkpoints } = used.get(keyId) ?? { results: 0, checkpoints: 0 };
    return `${nameOf(keyId, keyring)}: ${results} results, ${checkpoints} checkpoints`;
  });
}

function nameOf(keyId: number | null, { current, find }: Keyring): string {
  if (keyId === null) return "plain form";
  if (keyId === current?.id) return `key ${keyId} (encrypts)`;
  return `key ${keyId} (${find(keyId) === undefined ? "not configured" : "decrypts"})`;
}

function passLine(pass: PassProgress | undefined): string {
  if (pass === undefined) return "No server with keys has used this database.";
  const { keyId, finished, examined, changed, skipped, unreadable, startedAtMs } = pass;
  const aim = keyId === null ? "to decrypt all records" : `to key ${keyId}`;
  const counts = `${examined} records examined, ${changed} changed, ${skipped} skipped, ${unreadable} unreadable`;
  return `The pass ${aim} of ${new Date(startedAtMs).toISOString()} ${finished ? "is finished" : "is running"}: ${counts}.`;
}
