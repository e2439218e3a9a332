import type { Logger } from "pino";
import type { Repeating } from "../background/repeat.ts";
import type { Config } from "../config/config.ts";
import { NO_KEYS, parseKeyring } from "../config/keyring.ts";
import type { CoreParts } from "../core-parts.ts";
import type { Runner } from "../database/pool.ts";
import type { UnreadableCause } from "../records/engine/record-values.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { entryFormat } from "./entry-format.ts";
import { createRecordEncryption } from "./record-encryption.ts";
import { createReencryption } from "./reencryption.ts";
import { requireKeyOfPass } from "./required-key.ts";

interface ValuesOptions {
  readonly config: Config;
  readonly metrics: Pick<Metrics, "unreadableRecords">;
  readonly log: Logger;
}

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

/**
 * Returns how values are stored in rows, and completions in the cache: encrypted if keys are configured, in plain form without.
 */
export function openStoredValues(options: ValuesOptions) {
  const { config } = options;
  // `readConfig` accepts only a text that can be parsed; without keys nothing is encrypted.
  const keyring = parseKeyring(config.ONCEWARD_ENCRYPTION_KEYS ?? "") ?? NO_KEYS;
  const values = createRecordEncryption(keyring, reportUnreadable(options));
  return {
    values,
    entries: entryFormat(config.ONCEWARD_API_KEY_PEPPER, keyring),
    /** @throws CommandError if this replica lacks the key under which the installation stores values. */
    requireKeys: (runner: Runner) => requireKeyOfPass(runner, config),
    /** The tasks that store values again, under the current key: none without keys. */
    tasks({
      tasks,
      metrics,
      onFailed,
    }: Pick<CoreParts, "tasks" | "metrics" | "onFailed">): readonly Repeating[] {
      if (keyring.ids.length === 0) return [];
      return [
        createReencryption({
          pool: tasks.administrationPool.forTask("encryption"),
          encryption: values,
          metrics,
          recordsPerSecond: config.ONCEWARD_ENCRYPTION_RATE,
          onFailed: onFailed("encrypt_records"),
        }),
      ];
    },
  };
}
