import type { ChaosRedis } from "../redis.ts";
import type { Rig } from "../rig.ts";
import { type Fault, last, type Scene } from "./fault.ts";

const COPIES = "onceward:*";

/**
 * Faults of Redis, made by a real one: a replica without a master answers READONLY, a Redis without memory
 * answers OOM, and one whose writers are paused executes their SETs late.
 */
export const REDIS_FAULTS: readonly Fault[] = [
  redisFault("redis-kill", async (redis, scene) => {
    await redis.kill();
    await last(scene, 500, 3000);
    await redis.restart();
  }),
  redisFault("redis-freeze", async (redis, scene) => {
    redis.signal("SIGSTOP");
    await last(scene, 1000, 4000);
    redis.signal("SIGCONT");
  }),
  redisFault("redis-flush", async (redis, scene) => {
    for (let round = 0; round < 5; round++) {
      await redis.command("flushall");
      await last(scene, 100, 400);
    }
  }),
  redisFault("redis-old-snapshot", async (redis, scene) => {
    const snapshot = await dump(redis);
    await last(scene, 8000, 14_000);
    await redis.command("flushall");
    for (const { name, value } of snapshot) await redis.command("restore", name, 0, value, "replace");
  }),
  redisFault("redis-read-only", async (redis, scene) => {
    await redis.command("replicaof", "127.0.0.1", 1);
    await last(scene, 1000, 4000);
    await redis.command("replicaof", "no", "one");
  }),
  redisFault("redis-out-of-memory", async (redis, scene) => {
    await redis.command("config", "set", "maxmemory", 1);
    await last(scene, 1000, 4000);
    await redis.command("config", "set", "maxmemory", 0);
  }),
  redisFault("redis-bit-flips", async (redis, scene) => {
    for (let round = 0; round < 20; round++) {
      for (const name of await copies(redis)) await flipBit(redis, name, scene);
      await last(scene, 50, 150);
    }
  }),
  redisFault("redis-late-sets", async (redis, scene) => {
    // Writes are executed after records were forgotten; reads continue.
    await redis.command("client", "pause", 5000, "write");
    await last(scene, 5000);
    await redis.command("client", "unpause");
  }),
];

function redisFault(name: string, inject: (redis: ChaosRedis, scene: Scene) => Promise<void>): Fault {
  return {
    name,
    target: "redis",
    async inject(scene) {
      if (scene.rig.redis !== undefined) await inject(scene.rig.redis, scene);
    },
    whyNot: async ({ redis }: Rig) => (redis === undefined ? "no Redis is installed" : undefined),
  };
}

async function copies(redis: ChaosRedis): Promise<readonly Buffer[]> {
  return (await redis.command("keys", COPIES)) as Buffer[];
}

async function dump(redis: ChaosRedis): Promise<{ readonly name: Buffer; readonly value: Buffer }[]> {
  const found: { name: Buffer; value: Buffer }[] = [];
  for (const name of await copies(redis)) {
    const value = await redis.command("dump", name);
    if (Buffer.isBuffer(value)) found.push({ name, value });
  }
  return found;
}

async function flipBit(redis: ChaosRedis, name: Buffer, { random }: Scene): Promise<void> {
  const bytes = Number(await redis.command("strlen", name));
  const offset = random.below(8 * bytes);
  if (bytes === 0) return;
  const bit = Number(await redis.command("getbit", name, offset));
  await redis.command("setbit", name, offset, 1 - bit);
}
