import { once } from "node:events";
import { setImmediate as turnOfTheLoop } from "node:timers/promises";
import { expect, onTestFinished, test, vi } from "vitest";
import { createRedisCache } from "../../server/src/records/replay/redis.ts";
import { connectRedis } from "../../server/src/records/replay/redis-connection.ts";
import { parseRedisUrl } from "../../server/src/records/replay/redis-url.ts";
import { describeWithRedis, useRedis } from "../support/redis/redis.ts";

describeWithRedis("A connection to Redis", () => {
  const redis = useRedis();

  /** Creates a cache on a connection that is ready, and records its reports. */
  async function connect(url = redis.url) {
    const target = parseRedisUrl(url);
    if (target === undefined) throw new Error("the URL is malformed");
    const connection = connectRedis(
      () => target,
      "commands",
      () => {},
    );
    const failures: unknown[] = [];
    const bypassed: boolean[] = [];
    const cache = createRedisCache(connection, {
      failed: (error) => failures.push(error),
      onBypassed: (is) => bypassed.push(is),
    });
    onTestFinished(() => {
      redis.signal("SIGCONT");
      cache.stop();
      connection.disconnect();
    });
    await once(connection, "ready");
    return { connection, cache, failures, bypassed };
  }

  /** Stops the clock of time-outs for the rest of a test, which a slow machine would reach, and which other tests are about. */
  function stopTimeouts(): void {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
  }

  test("returns the stored bytes, and nothing for an unknown name", async () => {
    const { cache } = await connect();
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
    cache.set("bytes", () => bytes, 60_000);
    await expect.poll(() => cache.get("bytes")).toEqual({ bytes, answered: true });
    expect(await cache.get("nothing")).toEqual({ bytes: undefined, answered: true });
    const names = (await redis.command("keys", "*")) as Buffer[];
    expect(names.map(String)).toEqual(["onceward:bytes"]);
  });

  test("sends the values of one turn in one command after it, each with its own lifetime", async () => {
    const { connection, cache } = await connect();
    const [script, single] = [vi.spyOn(connection, "eval"), vi.spyOn(connection, "set")];
    const values = new Map(
      Array.from({ length: 5 }, (_, n) => [`value-${n}`, Buffer.from([n, 0x80 + n, 0])]),
    );
    const made: string[] = [];
    [...values].forEach(([name, bytes], n) => {
      const make = () => {
        made.push(name);
        return bytes;
      };
      cache.set(name, make, (n + 1) * 60_000 - 0.5);
    });
    expect(made).toEqual([]);
    await turnOfTheLoop();
    expect(made).toEqual([...values.keys()]);
    for (const [name, bytes] of values)
      await expect.poll(() => cache.get(name)).toEqual({ bytes, answered: true });
    const lifetimesMs = await Promise.all(
      [...values.keys()].map((name) => redis.command("pttl", `onceward:${name}`)),
    );
    expect(lifetimesMs.map((ms) => Math.ceil(Number(ms) / 60_000))).toEqual([1, 2, 3, 4, 5]);
    expect([script.mock.calls.length, single.mock.calls.length]).toEqual([1, 0]);
  });

  test("that refuses scripts stores values separately, and gets a script once a minute", async () => {
    await redis.command("acl", "setuser", "plain", "on", ">secret", "~*", "&*", "+@all", "-@scripting");
    const { connection, cache, failures } = await connect(`redis://plain:secret@127.0.0.1:${redis.port}`);
    stopTimeouts();
    const script = vi.spyOn(connection, "eval");
    for (const round of [1, 2, 3]) {
      const names = Array.from({ length: 3 }, (_, n) => `round-${round}-${n}`);
      for (const name of names) cache.set(name, () => Buffer.from(name), 60_000);
      const stored = async () => (await Promise.all(names.map(cache.get))).map(({ bytes }) => String(bytes));
      await expect.poll(stored).toEqual(names);
    }
    expect([script.mock.calls.length, failures]).toEqual([1, []]);
  });

  test("that accepts neither a script nor single values reports one failure for all of them", async () => {
    await redis.command("acl", "setuser", "reader", "on", ">secret", "~*", "&*", "+get", "+info");
    const { cache, failures } = await connect(`redis://reader:secret@127.0.0.1:${redis.port}`);
    stopTimeouts();
    for (const name of ["one", "two", "three"]) cache.set(name, () => Buffer.from(name), 60_000);
    await expect.poll(() => failures.map(String)).toEqual([expect.stringContaining("NOPERM")]);
    expect(await cache.get("one")).toEqual({ bytes: undefined, answered: true });
  });

  test("that refuses reads is bypassed until the read of a probe is allowed", async () => {
    await redis.command("acl", "setuser", "writer", "on", ">secret", "~*", "&*", "+set", "+info");
    const { connection, cache, bypassed } = await connect(`redis://writer:secret@127.0.0.1:${redis.port}`);
    stopTimeouts();
    for (const name of ["one", "two", "three"]) await cache.get(name);
    const reads = vi.spyOn(connection, "getBuffer");
    await vi.advanceTimersByTimeAsync(1000);
    await turnOfTheLoop();
    expect([bypassed, reads.mock.calls.length]).toEqual([[true], 1]);
    await expect.poll(() => reads.mock.settledResults.map(({ type }) => type)).toEqual(["rejected"]);
    expect(cache.isBypassed()).toBe(true);
    await redis.command("acl", "setuser", "writer", "+get");
    await expect
      .poll(async () => {
        await vi.advanceTimersByTimeAsync(1000);
        return bypassed;
      })
      .toEqual([true, false]);
  });

  test("that is frozen: a read times out before the connection; the third opens the breaker", async () => {
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

  test("that is frozen is sent a bounded number of writes", async () => {
    const { connection, cache } = await connect();
    const scripts = vi.spyOn(connection, "eval");
    redis.signal("SIGSTOP");
    for (let write = 0; write < 5000; write++) cache.set(`write-${write}`, () => Buffer.alloc(10), 60_000);
    await turnOfTheLoop();
    expect(scripts.mock.calls.map(([, keys]) => keys)).toEqual([256, 256, 256, 232]);
  });

  test("that is lost fails no call and is sent no command until it is back", async () => {
    const { connection, cache, failures } = await connect();
    await redis.kill();
    await vi.waitUntil(() => connection.status !== "ready", { timeout: 30_000 });
    const sends = vi.spyOn(connection, "getBuffer");
    failures.length = 0;
    expect(await cache.get("bytes")).toEqual({ bytes: undefined, answered: false });
    cache.set("bytes", () => Buffer.alloc(1), 60_000);
    cache.publish("onceward:channel", "");
    expect([sends.mock.calls.length, failures]).toEqual([0, []]);
    await redis.restart();
    await vi.waitUntil(() => !cache.isBypassed(), { timeout: 30_000 });
    cache.set("bytes", () => Buffer.from("back"), 60_000);
    await expect.poll(() => cache.get("bytes")).toEqual({ bytes: Buffer.from("back"), answered: true });
  });
});
