import { once } from "node:events";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { createRedisCache } from "../../server/src/cache/redis.ts";
import { connectRedis } from "../../server/src/cache/redis-connection.ts";
import { parseRedisUrl } from "../../server/src/cache/redis-url.ts";
import { describeWithRedis, startRedis, type TestRedis } from "../helpers/redis.ts";

describeWithRedis("A connection to Redis", () => {
  let redis: TestRedis;

  beforeAll(async () => {
    redis = await startRedis();
  });

  afterAll(async () => {
    await redis?.stop();
  });

  /** A cache on a connection that is ready, and what it reports. */
  async function connect() {
    const target = parseRedisUrl(redis.url);
    if (target === undefined) throw new Error("the URL is malformed");
    const connection = connectRedis(target, "commands", () => {});
    const failures: unknown[] = [];
    const bypassed: boolean[] = [];
    const cache = createRedisCache(connection, {
      failed: (error) => failures.push(error),
      bypassed: (is) => bypassed.push(is),
    });
    onTestFinished(() => {
      redis.signal("SIGCONT");
      cache.stop();
      connection.disconnect();
    });
    await once(connection, "ready");
    return { connection, cache, failures, bypassed };
  }

  test("answers what was stored, byte for byte, and that there is nothing", async () => {
    const { cache } = await connect();
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
    cache.set("bytes", bytes, 60_000);
    expect(await cache.get("bytes")).toEqual({ bytes, answered: true });
    expect(await cache.get("nothing")).toEqual({ bytes: undefined, answered: true });
    const names = (await redis.command("keys", "*")) as Buffer[];
    expect(names.map(String)).toEqual(["onceward:bytes"]);
  });

  test("that is frozen: a read is given up long before the connection, and the third opens the breaker", async () => {
    const { connection, cache, failures, bypassed } = await connect();
    const events: string[] = [];
    const closed = new Promise<void>((resolve) => {
      connection.once("close", () => {
        events.push("connection closed");
        resolve();
      });
    });
    redis.signal("SIGSTOP");
    for (let read = 1; read <= 5; read++) {
      expect(await cache.get("bytes")).toEqual({ bytes: undefined, answered: false });
    }
    events.push("reads given up");
    expect([failures.length, bypassed, cache.isBypassed()]).toEqual([3, [true], true]);
    await closed;
    expect(events).toEqual(["reads given up", "connection closed"]);
  });

  test("that is frozen takes a bounded number of writes", async () => {
    const { connection, cache } = await connect();
    const sends = vi.spyOn(connection, "set");
    redis.signal("SIGSTOP");
    for (let write = 0; write < 5000; write++) cache.set(`write-${write}`, Buffer.alloc(10), 60_000);
    expect(sends.mock.calls.length).toBe(1000);
  });

  test("that is lost fails nothing, and costs no command until it is back", async () => {
    const { connection, cache, failures } = await connect();
    await redis.kill();
    await vi.waitUntil(() => connection.status !== "ready", { timeout: 5000 });
    const sends = vi.spyOn(connection, "getBuffer");
    failures.length = 0;
    expect(await cache.get("bytes")).toEqual({ bytes: undefined, answered: false });
    cache.set("bytes", Buffer.alloc(1), 60_000);
    cache.publish("onceward:channel", "");
    expect([sends.mock.calls.length, failures]).toEqual([0, []]);
    await redis.restart();
    await vi.waitUntil(() => !cache.isBypassed(), { timeout: 5000 });
    cache.set("bytes", Buffer.from("back"), 60_000);
    expect(await cache.get("bytes")).toEqual({ bytes: Buffer.from("back"), answered: true });
  });
});
