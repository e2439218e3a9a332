import { NO_KEYS, parseKeyring } from "../config/keyring.ts";
import type { UnreadableCause } from "../records/engine/record-values.ts";
import type { Feature, ValuesOptions } from "../replica/feature.ts";
import { encryptionKeysCheck } from "./doctor-check.ts";
import { encryptionStatus } from "./encryption-status.ts";
import { entryFormat } from "./entry-format.ts";
import { createRecordEncryption } from "./record-encryption.ts";
import { createReencryption } from "./reencryption.ts";
import { requireKeyOfPass } from "./required-key.ts";

/** The metric counts each record that cannot be decrypted; the log has one line per interval. */
const WARNING_INTERVAL_MS = 60_000;

/** Counts each record that cannot be decrypted, and logs it at most once per interval. */
function reportUnreadable({ metrics, log }: ValuesOptions): (cause: UnreadableCause, keyId: number) => void {
  let warnedAtMs = Number.NEGATIVE_INFINITY;
  return (cause, keyId) => {
    metrics.unreadableRecords.inc({ cause });
    if (performance.now() - warnedAtMs < WARNING_INTERVAL_MS) return;
    warnedAtMs = performance.now();
    log.error({ cause, keyId }, "a record cannot be decrypted; calls that need it fail");
  };
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
  checks: [encryptionKeysCheck],
  openValues(options) {
    const { config } = options;
    // `readConfig` accepts only a text that can be parsed; without keys nothing is encrypted.
    const keyring = parseKeyring(config.ONCEWARD_ENCRYPTION_KEYS ?? "") ?? NO_KEYS;
    const values = createRecordEncryption(keyring, reportUnreadable(options));
    return {
      values,
      entries: entryFormat(config.ONCEWARD_API_KEY_PEPPER, keyring),
      requireKeys: (runner) => requireKeyOfPass(runner, config),
      // Without keys there is nothing that could be encrypted or decrypted, and so no task.
      tasks(core) {
        if (keyring.ids.length === 0) return [];
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
