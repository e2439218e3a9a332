import { type RedisFacts, readRedisFacts } from "../../records/replay/redis-facts.ts";
import type { Check, Observation } from "../findings.ts";

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
function judgeRedis({ address, role, maxMemoryBytes, evictionPolicy }: RedisFacts): readonly Observation[] {
  if (role !== "master") return [{ id: "redis_not_master", summary: `Redis at ${address} is a replica.` }];
  if (maxMemoryBytes === 0) {
    const summary = `Redis at ${address} has no maxmemory: it grows until the machine has no memory.`;
    return [{ id: "redis_memory_unlimited", summary }];
  }
  if (evictionPolicy === "noeviction") {
    const summary = `Redis at ${address} has the policy noeviction: once full, it refuses new entries.`;
    return [{ id: "redis_evicts_nothing", summary }];
  }
  return [];
}
