import { setTimeout as sleep } from "node:timers/promises";
import type { Violation } from "../errors/errors.ts";
import { throwIfAny } from "../errors/violations.ts";
import { type DeliverOptions, deliverCompletions } from "./deliver.ts";

/**
 * Normally `run` itself completes the claim; the relay delivers the remaining completions, which can wait this long.
 */
const DEFAULT_POLL_MS = 1000;
/** A shorter interval would itself be a load on the database. */
const MIN_POLL_MS = 10;
const MAX_POLL_MS = 3_600_000;

/** The options of a relay. */
export interface RelayOptions extends DeliverOptions {
  /** How long to wait after a pass that found nothing due, or failed, in milliseconds. At least 10. Default: 1,000. */
  readonly pollMs?: number | undefined;
}

/** A running relay. */
export interface Relay extends AsyncDisposable {
  /** Stops the relay after the current pass. Call it before the client's `close`. May be called again. */
  close(): Promise<void>;
}

/**
 * Starts a relay. It delivers to the service the completions that `completeIn` has written and `run` could not
 * deliver. Any number of relays may run concurrently; the simplest is one in each process that uses `completeIn`.
 *
 * ```ts
 * const relay = startRelay({
 *   onceward,
 *   database: pgExecutor(pool),
 *   onUndeliverable: (completion) => log.error(completion, "the service will never accept this completion"),
 * });
 * ```
 *
 * The relay continues after outages of the service or the database. Only `close` stops it. The hooks must not throw.
 *
 * @throws InvalidRequestError for an invalid `pollMs`.
 */
export function startRelay({ pollMs = DEFAULT_POLL_MS, ...options }: RelayOptions): Relay {
  const violations: Violation[] = [];
  if (!(pollMs >= MIN_POLL_MS && pollMs <= MAX_POLL_MS)) {
    violations.push({ field: "pollMs", description: `must be milliseconds, ${MIN_POLL_MS}-${MAX_POLL_MS}` });
  }
  throwIfAny(violations);
  const closing = new AbortController();
  const running = relay(options, pollMs, closing.signal);
  const close = () => {
    closing.abort();
    return running;
  };
  return { close, [Symbol.asyncDispose]: close };
}

async function relay(options: DeliverOptions, pollMs: number, closing: AbortSignal): Promise<void> {
  while (!closing.aborted) {
    if (await deliverSome(options)) continue;
    // Rejects when the relay is closed, and then the loop ends.
    await sleep(pollMs, undefined, { signal: closing }).catch(() => {});
  }
}

/** Runs one pass. Returns whether more completions may be due now. */
async function deliverSome(options: DeliverOptions): Promise<boolean> {
  try {
    const { delivered, undeliverable, failed } = await deliverCompletions(options);
    return failed === 0 && delivered + undeliverable > 0;
  } catch (error) {
    options.onError?.(error);
    return false;
  }
}
