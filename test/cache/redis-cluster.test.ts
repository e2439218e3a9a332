import { once } from "node:events";
import { Cluster } from "ioredis";
import { afterAll, expect, onTestFinished, test, vi } from "vitest";
import { createRedisCache } from "../../server/src/records/replay/redis.ts";
import { connectRedis } from "../../server/src/records/replay/redis-connection.ts";
import { slotOf } from "../../server/src/records/replay/redis-setter.ts";
import { parseRedisUrl } from "../../server/src/records/replay/redis-url.ts";
import { describeWithRedis } from "../support/redis/redis.ts";
import { startCluster, type Topology, untilMaster } from "../support/redis/redis-topologies.ts";

const LIFETIME_MS = 60_000;

describeWithRedis("A cache in a cluster of three nodes", () => {
  /** Started by the first test: its start polls. */
  let redis: Topology | undefined;

  afterAll(() => redis?.stop());

  async function connect() {
    redis ??= await startCluster();
    const target = parseRedisUrl(redis.url);
    if (target === undefined) throw new Error("the URL is malformed");
    const connection = connectRedis(
      () => target,
      "commands",
      () => {},
    );
    if (!(connection instanceof Cluster)) throw new Error("not a cluster");
    const failures: unknown[] = [];
    const failed = (error: unknown) => failures.push(error);
    const cache = createRedisCache(connection, { failed, onBypassed: () => {} });
    onTestFinished(() => {
      cache.stop();
      connection.disconnect();
    });
    await once(connection, "ready");
    // A node is connected by its first command.
    await Promise.all(connection.nodes("master").map((node) => node.ping()));
    /** Stores a text under each name, in one turn of the event loop. */
    const setAll = (names: readonly string[], text: string) => {
      for (const name of names) cache.set(name, () => Buffer.from(text), LIFETIME_MS);
    };
    const getAll = (names: readonly string[]) =>
      Promise.all(names.map(async (name) => String((await cache.get(name)).bytes)));
    /**
     * Stores a text under each name until all have it: what Redis does not answer within 50 ms is dropped, as on a busy
     * machine. Returns how often it was stored.
     */
    const store = async (names: readonly string[], text: string) => {
      let times = 0;
      const storeAndRead = async () => {
        times++;
        setAll(names, text);
        return await getAll(names);
      };
      await expect.poll(storeAndRead).toEqual(names.map(() => text));
      return times;
    };
    /** Failures other than an answer that came too late. */
    const otherFailures = () => failures.filter((error) => !/did not answer within/.test(String(error)));
    return { redis, connection, otherFailures, setAll, getAll, store };
  }

  test("sends the values of one turn in one pipeline for each node", async () => {
    const { connection, otherFailures, store } = await connect();
    const [pipelines, single] = [vi.spyOn(connection, "pipeline"), vi.spyOn(connection, "set")];
    const names = Array.from({ length: 200 }, (_, n) => `turn-${n}`);
    const times = await store(names, "first");
    // Fewer while Redis is not used because it answered late.
    expect(pipelines.mock.calls.length % 3).toBe(0);
    expect(pipelines.mock.calls.length).toBeLessThanOrEqual(3 * times);
    expect([single.mock.calls.length, otherFailures()]).toEqual([0, []]);
  });

  test("keeps the newest value of each name while a slot moves to another node", async () => {
    const { connection, otherFailures, store } = await connect();
    const names = Array.from({ length: 60 }, (_, n) => `moved-${n}`);
    await store(names, "before");
    const masters = connection.nodes("master");
    const slot = slotOf("onceward:moved-0");
    const holder = connection.slots[slot]?.[0];
    const from = masters.find(({ options }) => `${options.host}:${options.port}` === holder);
    const to = masters.find((node) => node !== from);
    if (from === undefined || to === undefined) throw new Error("a node is missing");
    const [fromId, toId] = [await from.cluster("MYID"), await to.cluster("MYID")];
    await to.cluster("SETSLOT", slot, "IMPORTING", fromId);
    await from.cluster("SETSLOT", slot, "MIGRATING", toId);
    // The old node answers ASK for a name that it no longer has.
    await from.del(...(await from.cluster("GETKEYSINSLOT", slot, names.length)));
    await store(names, "during");
    for (const node of [to, from]) await node.cluster("SETSLOT", slot, "NODE", toId);
    // The connection learns of one slot's move, and not yet that the others have stayed.
    await connection.set("onceward:moved-0", "after");
    await store(names, "after");
    expect(otherFailures()).toEqual([]);
  });

  test("loses a dead node's copies, answers no older one, and stores after the failover", async () => {
    const { redis, setAll, getAll, store } = await connect();
    const names = Array.from({ length: 60 }, (_, n) => `dying-${n}`);
    await redis.master.kill();
    setAll(names, "first");
    await untilMaster(redis.replica);
    const texts = new Set(await getAll(names));
    expect([...texts].filter((text) => !["first", "undefined"].includes(text))).toEqual([]);
    await store(names, "second");
  });
});
