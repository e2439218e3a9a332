import { largerBatch, smallerBatch } from "../background/batch-size.ts";
import { createRepeating, type Repeating } from "../background/repeat.ts";
import { limitLocks } from "../database/limit-locks.ts";
import type { Statements } from "../records/engine/administration-pool.ts";
import type { RecordValues } from "../records/engine/record-values.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import {
  advanceEncryptionPass,
  beginEncryptionPass,
  type PassPage,
  readEncryptionPass,
  takeEncryptionPage,
} from "./encryption-pass.ts";
import { reencryptPage } from "./reencrypt-records.ts";

/** Delay between two pages; at the default rate a page waits this long in any case. */
const INTERVAL_MS = 100;
const MAX_BACKOFF_MS = 30_000;
/** Delay between two searches for a page while none was due. */
const IDLE_MS = 2000;
/** Records of a page: their new values are computed in a few milliseconds. */
const MAX_PAGE_RECORDS = 200;
const PAGES_PER_SECOND = 10;
/** To examine a record takes about this share of the time that it takes to change one. */
const EXAMINED_SHARE = 0.01;
/** A shorter pause needs no turn of its own. */
const SHORT_PAUSE_S = 0.02;

/**
 * Encrypts the records that are stored under another key than the current one, or in plain form, in the
 * background; without a current key it decrypts them. All replicas share one pass over the records, and one of
 * them at a time works on a page. If it dies, the page is as before, and another replica continues the pass.
 */
export function createReencryption(options: {
  readonly pool: Statements;
  readonly encryption: RecordValues;
  readonly metrics: Pick<Metrics, "encryptionRecords" | "encryptionUnfinished">;
  /** Maximum records that change per second, on all replicas together. */
  readonly recordsPerSecond: number;
  readonly onFailed: (error: unknown) => void;
}): Repeating {
  const { pool, encryption, metrics, recordsPerSecond, onFailed } = options;
  const maxRecords = Math.min(MAX_PAGE_RECORDS, Math.ceil(recordsPerSecond / PAGES_PER_SECOND));
  let records = maxRecords;
  let hasBegun = false;
  let idleUntilMs = 0;

  function pauseAfter({ examined, changed, skipped, unreadable }: PassPage): number {
    return (changed + skipped + unreadable + examined * EXAMINED_SHARE) / recordsPerSecond;
  }

  function workOnPage(): Promise<PassPage | undefined> {
    return pool.transaction(async (transaction) => {
      await limitLocks(transaction);
      const after = await takeEncryptionPage(transaction, encryption.keyId);
      if (after === undefined) return undefined;
      const page = await reencryptPage(transaction, encryption, after, records);
      await advanceEncryptionPass(transaction, page, pauseAfter(page));
      return page;
    });
  }

  async function work(): Promise<boolean> {
    if (performance.now() < idleUntilMs) return false;
    if (!hasBegun) await beginEncryptionPass(pool, encryption.keyId);
    hasBegun = true;
    const page = await workOnPage();
    records = largerBatch(records, maxRecords);
    if (page !== undefined) count(page);
    if (page?.after !== undefined) return pauseAfter(page) < SHORT_PAUSE_S;
    await reportProgress();
    return false;
  }

  function count({ after: _, ...counts }: PassPage): void {
    for (const [action, number] of Object.entries(counts)) metrics.encryptionRecords.inc({ action }, number);
  }

  /** Reports a pass that is finished, or that another replica works on. */
  async function reportProgress(): Promise<void> {
    const pass = await readEncryptionPass(pool);
    if (pass === undefined) return;
    const { keyId, finished, changed, skipped, unreadable } = pass;
    const isDone = finished && keyId === encryption.keyId && changed + skipped + unreadable === 0;
    metrics.encryptionUnfinished.set(isDone ? 0 : 1);
    if (finished || keyId !== encryption.keyId) idleUntilMs = performance.now() + IDLE_MS;
  }

  return createRepeating({
    intervalMs: INTERVAL_MS,
    maxBackoffMs: MAX_BACKOFF_MS,
    work,
    onFailed(error) {
      records = smallerBatch(records);
      onFailed(error);
    },
  });
}
