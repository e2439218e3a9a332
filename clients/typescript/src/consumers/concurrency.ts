import { checkWholeNumber } from "../errors/violations.ts";

/** How many messages a consumer handles at the same time, regardless of how many the broker delivers. */
export interface ConcurrencyOptions {
  /** The most messages that are handled at the same time, 1-1,000; the others wait for their turn. Default: 10. */
  readonly concurrency?: number | undefined;
}

/** As many as a process without a setting of its own can serve: each may hold a connection to a database or a provider. */
const DEFAULT_CONCURRENCY = 10;
const MAX_CONCURRENCY = 1000;

/** Returns how many messages are handled at the same time. @throws InvalidRequestError for an invalid option. */
export function concurrencyOf({ concurrency = DEFAULT_CONCURRENCY }: ConcurrencyOptions): number {
  checkWholeNumber("concurrency", concurrency, 1, MAX_CONCURRENCY);
  return concurrency;
}

/**
 * Returns a function that calls another one at most `concurrency` times at once, in the order in which it is called itself.
 *
 * @throws InvalidRequestError for an invalid option.
 */
export function inTurns<Message, Value>(
  options: ConcurrencyOptions,
  handle: (message: Message) => Promise<Value>,
): (message: Message) => Promise<Value> {
  let free = concurrencyOf(options);
  const waiting: (() => void)[] = [];
  return async (message) => {
    if (free === 0) await new Promise<void>((resolve) => waiting.push(resolve));
    else free--;
    try {
      return await handle(message);
    } finally {
      // The turn is handed over, so that a message that comes now doesn't overtake those that wait.
      const next = waiting.shift();
      if (next === undefined) free++;
      else next();
    }
  };
}
