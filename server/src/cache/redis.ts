import type { Breaker } from "./breaker.ts";
import type { RedisConnection } from "./redis-connection.ts";

/** Bytes by name in Redis, which may be empty, slow, lying or gone: nothing here ever rejects. */
export interface RedisCache {
  /** Undefined where there is nothing, or where Redis doesn't answer in time. */
  get(name: string): Promise<{ readonly bytes: Buffer | undefined; readonly answered: boolean }>;
  /** Fire and forget. */
  set(name: string, bytes: Buffer, lifetimeMs: number): void;
}

/** Writes that may be under way; beyond, new ones are left out, so that a slow Redis can't pile them up. */
const MAX_WRITES = 1000;
const PREFIX = "onceward:";

const NO_ANSWER = { bytes: undefined, answered: false } as const;

/** @see RedisCache */
export function createRedisCache(connection: RedisConnection, breaker: Breaker): RedisCache {
  let writes = 0;

  async function report<Reply>(command: Promise<Reply>): Promise<Reply | undefined> {
    try {
      const reply = await command;
      breaker.succeeded();
      return reply;
    } catch {
      // Why is the connection's to say, once; that is what the breaker is for.
      breaker.failed();
      return undefined;
    }
  }

  return {
    async get(name) {
      if (!breaker.allows()) return NO_ANSWER;
      const reply = await report(connection.getBuffer(PREFIX + name));
      return reply === undefined ? NO_ANSWER : { bytes: reply ?? undefined, answered: true };
    },
    set(name, bytes, lifetimeMs) {
      if (writes >= MAX_WRITES || !breaker.allows()) return;
      writes++;
      void report(connection.set(PREFIX + name, bytes, "PX", Math.floor(lifetimeMs))).finally(() => {
        writes--;
      });
    },
  };
}
