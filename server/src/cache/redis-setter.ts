import { ReplyError } from "ioredis";
import type { RedisConnection } from "./redis-connection.ts";

/** A value to store under a name, with its lifetime in whole milliseconds. */
export interface Setting {
  readonly name: string;
  readonly bytes: Buffer;
  readonly lifetimeMs: number;
}

/**
 * Runs `SET` for each value. One command for many values saves a fifth of this process' time for a claim and
 * its completion (server/decisions/0005-what-a-claim-costs.md).
 */
const SET_ALL = `for i = 1, #KEYS do redis.call("SET", KEYS[i], ARGV[2 * i - 1], "PX", ARGV[2 * i]) end`;
/** Time after which a Redis that refused the script is tried again. */
const NO_SCRIPTS_FOR_MS = 60_000;

/**
 * Returns a function that stores several values by one script. Falls back to one command per value if Redis
 * refuses the script: in a cluster, where a script may access only one slot, and for a user without `+eval`.
 *
 * The function rejects if a value was not stored.
 */
export function createRedisSetter(
  connection: RedisConnection,
): (settings: readonly Setting[]) => Promise<unknown> {
  let scriptsFromMs = Number.NEGATIVE_INFINITY;

  const setOne = ({ name, bytes, lifetimeMs }: Setting) => connection.set(name, bytes, "PX", lifetimeMs);
  const setEach = (settings: readonly Setting[]) => Promise.all(settings.map(setOne));

  return async (settings) => {
    if (settings.length === 1 || performance.now() < scriptsFromMs) return setEach(settings);
    const names = settings.map(({ name }) => name);
    const values = settings.flatMap(({ bytes, lifetimeMs }) => [bytes, lifetimeMs]);
    try {
      return await connection.eval(SET_ALL, names.length, ...names, ...values);
    } catch (error) {
      if (!(error instanceof ReplyError)) throw error;
      scriptsFromMs = performance.now() + NO_SCRIPTS_FOR_MS;
      return setEach(settings);
    }
  };
}
