import type { Logger } from "pino";
import type { Config } from "../../core/config/config.ts";
import { NO_KEYS, parseKeyring } from "../../core/config/keyring.ts";
import type { Feature } from "../../core/feature.ts";
import type { Runner } from "../../core/store/pool.ts";
import type { Metrics } from "../../core/telemetry/metrics.ts";
import { readEncryptionPass } from "./encryption-pass.ts";
import { encryptionStatus } from "./encryption-status.ts";
import { entryFormat } from "./entry-format.ts";
import { createRecordEncryption, type RecordEncryption } from "./record-encryption.ts";
import { createReencryption } from "./reencryption.ts";

/** The metric counts each record that cannot be decrypted; the log has one line per interval. */
const WARNING_INTERVAL_MS = 60_000;

/** Returns the encryption at rest as configured; without keys it encrypts nothing. */
function configuredEncryption(
  config: Config,
  {
    metrics,
    log,
  }: {
    readonly metrics: Pick<Metrics, "unreadableRecords">;
    readonly log: Logger;
  },
): RecordEncryption {
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
async function warnOfMissingKey(runner: Runner, { keyring }: RecordEncryption, log: Logger): Promise<void> {
  const keyId = (await readEncryptionPass(runner))?.keyId ?? undefined;
  if (keyId === undefined || keyring.find(keyId) !== undefined) return;
  log.error({ keyId }, "ONCEWARD_ENCRYPTION_KEYS lacks the key that encrypts this database's records");
}

/** Encrypts stored values under configured keys. */
export const encryption: Feature = {
  commands: [
    {
      name: "encryption-status",
      summary: "count the records under each encryption key",
      run: encryptionStatus,
    },
  ],
  openValues({ config, metrics, log }) {
    const values = configuredEncryption(config, { metrics, log });
    return {
      values,
      entries: entryFormat(config.ONCEWARD_API_KEY_PEPPER, values.keyring),
      warnIfUnreadable: (runner) => warnOfMissingKey(runner, values, log),
      // Without keys there is nothing that could be encrypted or decrypted, and so no task.
      tasks(core) {
        if (values.keyring.ids.length === 0) return [];
        return [
          createReencryption({
            pool: core.tasks.administrationPool.forTask("encryption"),
            encryption: values,
            metrics: core.metrics,
            recordsPerSecond: core.config.ONCEWARD_ENCRYPTION_RATE,
            onFailed: core.onFailed("encrypt_records"),
          }),
        ];
      },
    };
  },
};
