import { createBreaker } from "./breaker.ts";
import type { RedisConnection } from "./redis-connection.ts";
import { createRedisSetter, type Setting } from "./redis-setter.ts";

/**
 * Bytes by name in Redis. Redis may be empty, slow, wrong or unreachable: no method rejects or takes longer
 * than 50 ms.
 */
export type RedisCache = ReturnType<typeof createRedisCache>;

/** A slower answer is not worth the wait: Postgres answers in less time. */
const COMMAND_TIMEOUT_MS = 50;
/**
 * Concurrent time-outs cost calls 50 ms once. After three in a row, Redis is probed once a second and no call
 * waits for it.
 */
const MAX_FAILURES = 3;
const PAUSE_MS = 1000;
/** Maximum writes in flight. Further writes are dropped, so that they do not pile up behind a slow Redis. */
const MAX_WRITES = 1000;
/** As many as one statement completes: 4 MiB of the largest values, which block Redis for 2 ms. */
const MAX_SET_TOGETHER = 256;
const PREFIX = "onceward:";

const NO_ANSWER = { bytes: undefined, answered: false } as const;

/** Creates the cache in Redis. */
export function createRedisCache(
  connection: RedisConnection,
  observer: {
    /** Called when a command failed or was not answered in time. */
    readonly failed: (error: unknown) => void;
    /** Called when the use of Redis stops (true) or starts again (false). */
    readonly onBypassed: (bypassed: boolean) => void;
  },
) {
  const setAll = createRedisSetter(connection);
  let writes = 0;
  let unsent: (() => Setting)[] = [];
  const isReady = () => connection.status === "ready";
  const read = (name: string) => within(connection.getBuffer(PREFIX + name));
  const breaker = createBreaker({
    maxFailures: MAX_FAILURES,
    pauseMs: PAUSE_MS,
    // Reads a name, so that a user without the right to read counts as a failure.
    probe: async () => isReady() && (await read("probe").then(yes, no)),
    onChange: observer.onBypassed,
  });

  async function report<Reply>(command: Promise<Reply>): Promise<Reply | undefined> {
    try {
      const reply = await command;
      breaker.succeeded();
      return reply;
    } catch (error) {
      observer.failed(error);
      breaker.failed();
      return undefined;
    }
  }

  const mayWrite = () => writes + unsent.length < MAX_WRITES && isReady() && breaker.allows();

  /** Sends a command that performs `count` writes. */
  function write(command: Promise<unknown>, count: number): void {
    writes += count;
    void report(within(command)).finally(() => {
      writes -= count;
    });
  }

  function sendUnsent(): void {
    const makers = unsent;
    unsent = [];
    // Dropped if the connection was lost since.
    if (makers.length > 0 && isReady()) write(setAll(makers.map((make) => make())), makers.length);
  }

  return {
    /** Reads bytes; undefined if the name does not exist or Redis does not answer in time. */
    async get(name: string): Promise<{ readonly bytes: Buffer | undefined; readonly answered: boolean }> {
      if (!isReady() || !breaker.allows()) return NO_ANSWER;
      const reply = await report(read(name));
      return reply === undefined ? NO_ANSWER : { bytes: reply ?? undefined, answered: true };
    },
    /**
     * Stores bytes, without a result. `bytes` is called just before they are sent, after this turn of the event
     * loop, so that no reply waits for their computation.
     */
    set(name: string, bytes: () => Buffer, lifetimeMs: number): void {
      if (!mayWrite()) return;
      if (unsent.length === 0) setImmediate(sendUnsent);
      unsent.push(() => ({ name: PREFIX + name, bytes: bytes(), lifetimeMs: Math.ceil(lifetimeMs) }));
      if (unsent.length === MAX_SET_TOGETHER) sendUnsent();
    },
    /** Publishes a message, without a result. The channel's name gets no prefix. */
    publish(channel: string, message: string): void {
      if (mayWrite()) write(connection.publish(channel, message), 1);
    },
    /** Returns whether Redis is not used now: it is not connected, or the breaker is open. */
    isBypassed: () => !isReady() || !breaker.allows(),
    /** Stops probing Redis. */
    stop: breaker.stop,
  };
}

/** @throws Error if the reply does not arrive in time. */
function within<Reply>(command: Promise<Reply>): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const expire = () => reject(new Error(`Redis did not answer within ${COMMAND_TIMEOUT_MS} ms`));
    // After a stall of this process, a reply that has already arrived is read first.
    const timer = setTimeout(() => setImmediate(expire), COMMAND_TIMEOUT_MS);
    command.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

const yes = () => true;
const no = () => false;
