import { createBreaker } from "./breaker.ts";
import type { RedisConnection } from "./redis-connection.ts";
import { createRedisSetter, type Setting } from "./redis-setter.ts";

/** Bytes by name in Redis, which may be empty, slow, lying or gone: nothing here ever rejects, or takes long. */
export interface RedisCache {
  /** Undefined where there is nothing, or where Redis doesn't answer in time. */
  get(name: string): Promise<{ readonly bytes: Buffer | undefined; readonly answered: boolean }>;
  /**
   * Fire and forget. The bytes are asked for when they leave, after this turn of the event loop, so that no answer waits for
   * what making them takes.
   */
  set(name: string, bytes: () => Buffer, lifetimeMs: number): void;
  /** Fire and forget; the channel's name is used as it is. */
  publish(channel: string, message: string): void;
  /** Whether Redis is being passed over. */
  isBypassed(): boolean;
  /** No more tries whether it is back. */
  stop(): void;
}

/** Told how Redis is doing. */
export interface RedisObserver {
  /** A command failed, or wasn't answered in time. */
  readonly failed: (error: unknown) => void;
  /** Redis is passed over from now on, or no longer. */
  readonly bypassed: (is: boolean) => void;
}

/** Redis must be worth it: a command that takes longer is given up. */
const COMMAND_TIMEOUT_MS = 50;
/** Three time-outs in a row cost 50 ms once; from then on Redis is tried once a second, at nobody's expense. */
const MAX_FAILURES = 3;
const PAUSE_MS = 1000;
/** Writes that may be under way; beyond, new ones are left out, so that a slow Redis can't pile them up. */
const MAX_WRITES = 1000;
/** As many as a statement completes: 4 MiB of the largest copies, and 2 ms in which Redis answers nobody else. */
const MAX_SET_TOGETHER = 256;
const PREFIX = "onceward:";

const NO_ANSWER = { bytes: undefined, answered: false } as const;

/** @see RedisCache */
export function createRedisCache(connection: RedisConnection, observer: RedisObserver): RedisCache {
  const setAll = createRedisSetter(connection);
  let writes = 0;
  let unsent: (() => Setting)[] = [];
  const isReady = () => connection.status === "ready";
  const read = (name: string) => within(connection.getBuffer(PREFIX + name));
  const breaker = createBreaker({
    maxFailures: MAX_FAILURES,
    pauseMs: PAUSE_MS,
    // A read like any other: whoever may not read is no better off than without an answer.
    tryOut: async () => isReady() && (await read("try").then(yes, no)),
    onChange: observer.bypassed,
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

  /** So many writes are made by the command. */
  function write(command: Promise<unknown>, count: number): void {
    writes += count;
    void report(within(command)).finally(() => {
      writes -= count;
    });
  }

  function sendUnsent(): void {
    const makers = unsent;
    unsent = [];
    // Lost since, or closed: they are left out, like what comes now.
    if (makers.length > 0 && isReady()) write(setAll(makers.map((make) => make())), makers.length);
  }

  return {
    async get(name) {
      if (!isReady() || !breaker.allows()) return NO_ANSWER;
      const reply = await report(read(name));
      return reply === undefined ? NO_ANSWER : { bytes: reply ?? undefined, answered: true };
    },
    set(name, bytes, lifetimeMs) {
      if (!mayWrite()) return;
      if (unsent.length === 0) setImmediate(sendUnsent);
      unsent.push(() => ({ name: PREFIX + name, bytes: bytes(), lifetimeMs: Math.ceil(lifetimeMs) }));
      if (unsent.length === MAX_SET_TOGETHER) sendUnsent();
    },
    publish(channel, message) {
      if (mayWrite()) write(connection.publish(channel, message), 1);
    },
    isBypassed: () => !isReady() || !breaker.allows(),
    stop: breaker.stop,
  };
}

/** @throws if the reply isn't there in time. */
function within<Reply>(command: Promise<Reply>): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const giveUp = () => reject(new Error(`Redis did not answer within ${COMMAND_TIMEOUT_MS} ms`));
    // After a stall of this process, a reply that has come already is still read first.
    const timer = setTimeout(() => setImmediate(giveUp), COMMAND_TIMEOUT_MS);
    command.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

const yes = () => true;
const no = () => false;
