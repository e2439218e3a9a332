import type { Feature } from "../../core/feature.ts";
import { configuredEncryption, warnOfMissingKey } from "./encryption.ts";
import { encryptionStatus } from "./encryption-status.ts";
import { entryFormat } from "./entry-format.ts";
import { createReencryption } from "./reencryption.ts";

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
