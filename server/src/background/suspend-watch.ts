import { uptimeMs } from "../domain/clock-offset.ts";

/** Far below the 10 s within which a revoked key is refused; reading the uptime takes some microseconds. */
const INTERVAL_MS = 250;
/** Uptimes are exact to 10 ms, and the process may have to wait for a processor between the two readings. */
const TOLERANCE_MS = 500;

/**
 * Notices that the machine was suspended.
 *
 * Ages are measured by `performance.now()`, which does not advance while the machine is suspended: what was read just
 * before a suspend would count as new after it. This compares that clock with the uptime, which advances, so that copies
 * from before a suspend are dropped within INTERVAL_MS of running time. Suspends that are each shorter than the tolerance add
 * up.
 */
export function createSuspendWatch(options: {
  /** Called after a suspend, with its length. */
  readonly onResumed: (suspendedMs: number) => void;
  /** A clock that advances during a suspend, and one that does not; only tests change them. */
  readonly uptimeNowMs?: () => number;
  readonly processNowMs?: () => number;
}) {
  const { onResumed, uptimeNowMs = uptimeMs, processNowMs = () => performance.now() } = options;
  const aheadMs = () => uptimeNowMs() - processNowMs();
  let timer: NodeJS.Timeout | undefined;
  let seenMs = aheadMs();

  function look(): void {
    const suspendedMs = aheadMs() - seenMs;
    if (suspendedMs <= TOLERANCE_MS) return;
    seenMs += suspendedMs;
    onResumed(suspendedMs);
  }

  return {
    start(): void {
      timer ??= setInterval(look, INTERVAL_MS).unref();
    },
    stop: () => clearInterval(timer),
  };
}
