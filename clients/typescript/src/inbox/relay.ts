import { setTimeout as sleep } from "node:timers/promises";
import type { Violation } from "../errors/errors.ts";
import { throwIfAny } from "../errors/violations.ts";
import { type DeliverOptions, deliverCompletions } from "./deliver.ts";

/** What is written while all is well has been told by its run; the relay is for the others, which can wait so long. */
const DEFAULT_POLL_MS = 1000;
/** More often would be a load by itself. */
const MIN_POLL_MS = 10;
const MAX_POLL_MS = 3_600_000;

/** What a relay needs. */
export interface RelayOptions extends DeliverOptions {
  /** How long to rest when nothing is due, or something went wrong. At least 10. Default: 1,000. */
  readonly pollMs?: number | undefined;
}

/** A relay that runs. */
export interface Relay extends AsyncDisposable {
  /** Lets the pass under way finish, and ends. Before the client's own `close`. May be called again. */
  close(): Promise<void>;
}

/**
 * Delivers to the service what `completeIn` has written and nobody could tell it of, for as long as the process runs.
 * Any number may run side by side; one in each process that uses `completeIn` is the simplest.
 *
 * ```ts
 * const relay = startRelay({
 *   onceward,
 *   database: pgExecutor(pool),
 *   onUndeliverable: (completion) => log.error(completion, "the service will never take this completion"),
 * });
 * ```
 *
 * Outages of the service or the database are waited out. It ends by `close` only; the hooks must not throw.
 *
 * @throws InvalidRequestError for a `pollMs` that can't be meant.
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
    // Rejects when it is aborted, which ends the loop.
    await sleep(pollMs, undefined, { signal: closing }).catch(() => {});
  }
}

/** Whether there may be more to do at once. */
async function deliverSome(options: DeliverOptions): Promise<boolean> {
  try {
    const { delivered, undeliverable, failed } = await deliverCompletions(options);
    return failed === 0 && delivered + undeliverable > 0;
  } catch (error) {
    options.onError?.(error);
    return false;
  }
}
