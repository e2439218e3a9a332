import { OncewardError } from "../errors/errors.ts";
import { warn } from "../run/events.ts";
import { sleep } from "../run/retry.ts";
import type { Retry } from "./dead-letter.ts";
import { Partitions } from "./partitions.ts";

/** The part of a message of `@platformatic/kafka` that the adapter reads. */
export interface StreamMessage {
  readonly topic: string;
  readonly partition: number;
  readonly offset: bigint;
  /** In milliseconds since 1970. */
  readonly timestamp: bigint;
  /** Keys and values are text, or bytes if the consumer has no deserializers. */
  readonly headers: ReadonlyMap<unknown, unknown>;
  /** Commits the offset after the message. */
  commit(): void | Promise<void>;
}

/** The part of a consumer of `@platformatic/kafka` that the adapter uses. */
export interface StreamConsumer<Message> {
  /** The partitions that the group has assigned to the consumer; null while it has not joined. */
  readonly assignments: readonly { readonly topic: string; readonly partitions: readonly number[] }[] | null;
  /** Whether the consumer is closed permanently. */
  readonly closed: boolean;
  consume(options: {
    topics: string[];
    autocommit: false;
    mode: "committed";
    fallbackMode: "earliest" | "latest" | "fail";
  }): Promise<MessageStream<Message>>;
}

/** A stream of messages; it ends with an error when the broker wants the consumer to join its group again. */
export interface MessageStream<Message> extends AsyncIterable<Message> {
  close(): Promise<void>;
}

/** How a stream is read. */
export interface StreamSettings {
  readonly topics: readonly string[];
  readonly fallbackMode: "earliest" | "latest" | "fail";
  readonly maxMessages: number;
  readonly redeliverAfterMs: number;
}

/** Why the handling of a message ends early. Its offset is not committed, and the group's next owner gets it. */
const CLOSING = new OncewardError("ABORTED", "The consumer closes.");

/**
 * Tries to settle a message; must not reject. Resolves with undefined once its offset may be committed. Ends early at the
 * signal.
 */
type Settle<Message> = (message: Message, signal: AbortSignal) => Promise<Retry | undefined>;

/**
 * Reads the consumer's topics until `close`, and calls `settle` for each message: one after the other in a partition,
 * and each again until it is settled. Commits the offset of a message afterwards. When a stream ends, opens the next
 * one after `redeliverAfterMs`: the messages since the last committed offset then come again.
 */
export class StreamReader<Message extends StreamMessage> {
  readonly #consumer: StreamConsumer<Message>;
  readonly #settings: StreamSettings;
  readonly #settle: Settle<Message>;
  readonly #closing = new AbortController();
  readonly #done: Promise<void>;

  constructor(consumer: StreamConsumer<Message>, settings: StreamSettings, settle: Settle<Message>) {
    this.#consumer = consumer;
    this.#settings = settings;
    this.#settle = settle;
    this.#done = this.#readAll();
  }

  /** Resolves once the functions that run have ended, their offsets are committed, and the stream is closed. */
  async close(): Promise<void> {
    this.#closing.abort(CLOSING);
    await this.#done;
  }

  async #readAll(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted && !this.#consumer.closed) {
      try {
        await this.#readStream();
      } catch (error) {
        if (this.#consumer.closed) return;
        warn(`The stream of messages failed, and is opened again: ${error}`, "ONCEWARD_STREAM_FAILED");
      }
      await sleep(this.#settings.redeliverAfterMs, signal).catch(() => {});
    }
  }

  async #readStream(): Promise<void> {
    const { topics, fallbackMode, maxMessages } = this.#settings;
    // Of this stream alone: its messages come again in the next one.
    const ended = new AbortController();
    const outdated = new AbortController();
    const stopping = AbortSignal.any([this.#closing.signal, outdated.signal]);
    const signal = AbortSignal.any([stopping, ended.signal]);
    const partitions = new Partitions<Message>(maxMessages, async (message) => {
      const isSettled = await this.#settleOwned(message, signal, () => outdated.abort(CLOSING));
      if (isSettled && !ended.signal.aborted) await commit(message, ended.signal);
    });
    const stream = await this.#consumer.consume({
      topics: [...topics],
      autocommit: false,
      mode: "committed",
      fallbackMode,
    });
    const close = () =>
      void partitions
        .end()
        .then(() => stream.close())
        .catch(() => {});
    stopping.addEventListener("abort", close);
    if (stopping.aborted) close();
    try {
      for await (const message of stream) if (!signal.aborted) await partitions.add(message);
    } finally {
      stopping.removeEventListener("abort", close);
      ended.abort(CLOSING);
      await partitions.end();
      await stream.close().catch(() => {});
    }
  }

  /**
   * Settles a message as long as its partition is the consumer's. Resolves with false if the message has to come again.
   *
   * @param onLost is called if the partition is another consumer's: the message is dropped here. Without a committed offset,
   *   a stream whose consumer gets the partition back continues after the dropped messages, so that it has to end.
   */
  async #settleOwned(message: Message, signal: AbortSignal, onLost: () => void): Promise<boolean> {
    while (!signal.aborted) {
      if (!this.#owns(message)) {
        onLost();
        return false;
      }
      const retry = await this.#settle(message, signal);
      if (retry === undefined) return true;
      await sleep(retry.delayMs, signal).catch(() => {});
    }
    return false;
  }

  /** Returns whether the message's partition is not known to be another consumer's after a rebalance. */
  #owns({ topic, partition }: Message): boolean {
    const { assignments } = this.#consumer;
    if (assignments === null) return true;
    return assignments.some((owned) => owned.topic === topic && owned.partitions.includes(partition));
  }
}

/** Commits the offset behind a message, unless the stream ends before: one that has failed may never answer. */
async function commit(message: StreamMessage, ended: AbortSignal): Promise<void> {
  try {
    await Promise.race([message.commit(), aborted(ended)]);
  } catch (error) {
    const { topic, partition, offset } = message;
    // Without the commit the message comes again, as a duplicate.
    warn(`Offset ${offset} of ${topic}/${partition} is not committed: ${error}`, "ONCEWARD_NOT_COMMITTED");
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}
