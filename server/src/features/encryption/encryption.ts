import type { Logger } from "pino";
import type { Config } from "../../core/config/config.ts";
import { NO_KEYS, parseKeyring } from "../../core/config/keyring.ts";
import type { Runner } from "../../core/store/pool.ts";
import type { Metrics } from "../../core/telemetry/metrics.ts";
import { readEncryptionPass } from "./encryption-pass.ts";
import { createRecordEncryption, type RecordEncryption } from "./record-encryption.ts";

interface EncryptionOptions {
  readonly metrics: Pick<Metrics, "unreadableRecords">;
  readonly log: Logger;
}

/** The metric counts each record that cannot be decrypted; the log has one line per interval. */
const WARNING_INTERVAL_MS = 60_000;

/** Returns the encryption at rest as configured; without keys it encrypts nothing. */
export function configuredEncryption(config: Config, { metrics, log }: EncryptionOptions): RecordEncryption {
  let warnedAtMs = Number.NEGATIVE_INFINITY;
  // `readConfig` accepts only a text that can be parsed.
  const keyring = parseKeyring(config.ONCEWARD_ENCRYPTION_KEYS ?? "") ?? NO_KEYS;
  return createRecordEncryption(keyring, (cause, keyId) => {
    metrics.unreadableRecords.inc({ cause });
    if (performance.now() - warnedAtMs < WARNING_INTERVAL_MS) return;
    warnedAtMs = performance.now();
    log.error({ cause, keyId }, "a record cannot be decrypted; calls that need it fail");
  });
}

/** Logs an error if the records were last encrypted under a key that this server lacks. */
export async function warnOfMissingKey(
  runner: Runner,
  { keyring }: RecordEncryption,
  log: Logger,
): Promise<void> {
  const keyId = (await readEncryptionPass(runner))?.keyId ?? undefined;
  if (keyId === undefined || keyring.find(keyId) !== undefined) return;
  log.error({ keyId }, "ONCEWARD_ENCRYPTION_KEYS lacks the key that encrypts this database's records");
}
