import { ReplyError } from "ioredis";
import type { RedisConnection } from "./redis-connection.ts";

/** What is to be stored under a name, for so many whole milliseconds. */
export interface Setting {
  readonly name: string;
  readonly bytes: Buffer;
  readonly lifetimeMs: number;
}

/**
 * `SET` for each of them: one command instead of as many saves a fifth of what a claim and its completion cost this process
 * (server/decisions/0005-what-a-claim-costs.md).
 */
const SET_ALL = `for i = 1, #KEYS do redis.call("SET", KEYS[i], ARGV[2 * i - 1], "PX", ARGV[2 * i]) end`;
/** A Redis that takes no script is tried again after this, at the expense of one command. */
const NO_SCRIPTS_FOR_MS = 60_000;

/**
 * Answers what stores several values at once, by one script, or each by a command of its own where Redis refuses that: in a
 * cluster, whose scripts may touch one slot only, and to a user without `+eval`.
 *
 * What it answers rejects if any of them was not stored.
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
