import { type RedisFacts, readRedisFacts } from "../../../core/cache/redis-facts.ts";
import type { Check } from "../check.ts";
import type { Observation } from "../findings.ts";

/** Looks at the Redis of the configuration; nothing is wrong without one. */
export const redisCheck: Check = {
  name: "redis",
  needsPostgres: false,
  async examine({ config: { REDIS_URL: url } }) {
    if (url === undefined) return [];
    try {
      return (await readRedisFacts(url)).flatMap(judgeRedis);
    } catch (error) {
      const { message, cause } = error as Error;
      const why = cause instanceof Error && cause.message !== "" ? `${message}: ${cause.message}` : message;
      return [{ id: "redis_unreachable", summary: `Redis does not answer: ${why}.` }];
    }
  },
};

/** Returns what is wrong with a server. */
export function judgeRedis(redis: RedisFacts): readonly Observation[] {
  if (redis.role !== "master") {
    return [{ id: "redis_not_master", summary: `Redis at ${redis.address} is a replica.` }];
  }
  if (redis.maxMemoryBytes === 0) {
    return [
      {
        id: "redis_memory_unlimited",
        summary: `Redis at ${redis.address} has no maxmemory: it grows until the machine has no memory.`,
      },
    ];
  }
  if (redis.evictionPolicy === "noeviction") {
    return [
      {
        id: "redis_evicts_nothing",
        summary: `Redis at ${redis.address} has the policy noeviction: once full, it refuses new entries.`,
      },
    ];
  }
  return [];
}
