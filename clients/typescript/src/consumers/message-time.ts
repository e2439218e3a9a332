import type { ConsumerOptions } from "./options.ts";

/** How far a producer's clock may be ahead, as the service allows it. */
const MAX_AHEAD_MS = 300_000;

/**
 * Returns a consumer's options, with the message's own time for keys that contain none.
 *
 * @param timeMsOf returns the time in milliseconds; not a number if the message has none.
 */
export function withMessageTime<Message, Options extends Pick<ConsumerOptions<Message>, "keyCreatedAt">>(
  options: Options,
  timeMsOf: (message: Message) => number,
): Options {
  const { keyCreatedAt = (message: Message) => messageTime(timeMsOf(message)) } = options;
  return { ...options, keyCreatedAt };
}

/** A time in the future is not the key's: the producer's clock or its unit is wrong, or the message is for later. */
function messageTime(ms: number): Date | undefined {
  return ms > 0 && ms <= Date.now() + MAX_AHEAD_MS ? new Date(ms) : undefined;
}
