import { expect, onTestFinished, test } from "vitest";
import { useDatabase } from "../support/database/use-database.ts";
import { diagnoseDatabase } from "../support/doctor/diagnosis.ts";
import { describeWithRedis, type RedisSettings, startRedis } from "../support/redis/redis.ts";
import { startCluster, startSentinels } from "../support/redis/redis-topologies.ts";

const database = useDatabase();

/** A port on which nothing listens: only root may. A free one could be taken by another test. */
const NO_REDIS = "redis://127.0.0.1:1";

async function redisFindings(url: string) {
  const { findings } = await diagnoseDatabase(database.url, { REDIS_URL: url });
  return findings.filter(({ id }) => id.startsWith("redis"));
}

async function start(settings: RedisSettings = {}): Promise<string> {
  const redis = await startRedis(settings);
  onTestFinished(() => redis.stop());
  return redis.url;
}

const LIMITED = ["--maxmemory", "50mb"];
const EVICTS = [...LIMITED, "--maxmemory-policy", "allkeys-lru"];

describeWithRedis("Redis", () => {
  test("a Redis that is limited and evicts has no finding", async () => {
    expect(await redisFindings(await start({ args: EVICTS }))).toEqual([]);
  });

  test("a Redis without a limit, and one that evicts nothing", async () => {
    expect(await redisFindings(await start())).toMatchObject([
      { id: "redis_memory_unlimited", severity: "warning" },
    ]);
    const full = await start({ args: LIMITED });
    expect(await redisFindings(full)).toMatchObject([
      { id: "redis_evicts_nothing", summary: expect.stringContaining(new URL(full).host) },
    ]);
  });

  test("a replica of Redis", async () => {
    const master = await start({ args: EVICTS });
    const args = ["--replicaof", "127.0.0.1", new URL(master).port];
    expect(await redisFindings(await start({ args }))).toMatchObject([{ id: "redis_not_master" }]);
  });

  test("a Redis that is unreachable, and one whose user may not ask for its state", async () => {
    expect(await redisFindings(NO_REDIS)).toMatchObject([
      { id: "redis_unreachable", summary: expect.stringContaining("ECONNREFUSED") },
    ]);
    const password = "a password of the test";
    const url = await start({ args: ["--requirepass", password], connect: { password } });
    expect(await redisFindings(url)).toMatchObject([
      { id: "redis_unreachable", summary: expect.stringContaining("NOAUTH") },
    ]);
  });

  test("the masters of sentinels and of a cluster are asked", async () => {
    const sentinels = await startSentinels();
    onTestFinished(() => sentinels.stop());
    expect(await redisFindings(sentinels.url)).toMatchObject([
      { id: "redis_memory_unlimited", summary: expect.stringMatching(/^Redis at main of the sentinels /) },
    ]);
    const cluster = await startCluster();
    onTestFinished(() => cluster.stop());
    const ofCluster = await redisFindings(cluster.url);
    expect(new Set(ofCluster.map(({ summary }) => summary)).size).toBe(3);
    expect(new Set(ofCluster.map(({ id }) => id))).toEqual(new Set(["redis_memory_unlimited"]));
  });
});
