import { setTimeout as pause } from "node:timers/promises";
import { Redis } from "ioredis";
import { expect, onTestFinished, test } from "vitest";
import type { ServerTuning } from "../../server/src/replica/connect.ts";
import { connectClient } from "../support/calls/clients.ts";
import { errorOf } from "../support/calls/errors.ts";
import { copyRecord, endLeases, grantsAmong } from "../support/calls/records.ts";
import { grant, ORDER, seconds, success } from "../support/calls/verbs.ts";
import { statementsDuring } from "../support/database/statements.ts";
import { useDatabase } from "../support/database/use-database.ts";
import { describeWithRedis, useRedis } from "../support/redis/redis.ts";
import { createTenant } from "../support/servers/tenants.ts";
import { startServerOfTest } from "../support/servers/use-server.ts";
import { untilWaiting } from "../support/servers/waiters.ts";

const WAITING = { ...ORDER, wait: seconds(60) };
/** Longer than any wait in these tests: a claim that ends earlier was notified. */
const NEVER_LOOK = { waiterTickMs: 600_000 };
/** Waiters of one replica; `npm run bench` has 10,000 of them. */
const MANY = 2000;
const PATIENCE = { timeout: 30_000, interval: 10 };

describeWithRedis("A claim that waits on another replica", () => {
  const redis = useRedis();
  const database = useDatabase();

  const start = (tuning?: ServerTuning, env: Readonly<Record<string, string>> = {}) =>
    startServerOfTest(database.url, { REDIS_URL: redis.url, ...env }, tuning);

  /**
   * Starts two replicas that know of each other: ORDER is claimed on one, and a claim waits for it on the
   * other.
   */
  async function holderAndWaiter(tuning: ServerTuning = NEVER_LOOK) {
    const [near, far] = await Promise.all([start(tuning), start(tuning)]);
    await expect.poll(() => subscribersOf("waiters"), PATIENCE).toBe(2);
    const tenant = await createTenant(database);
    const holder = connectClient(near, tenant.apiKey);
    const { fencingToken } = await grant(holder);
    const waiting = connectClient(far, tenant.apiKey).claim(WAITING);
    await untilWaiting(far, 1);
    await expect.poll(() => subscribersOf(ORDER.key), PATIENCE).toBe(1);
    return { near, far, tenant, holder, held: { ...ORDER, fencingToken }, waiting };
  }

  /** Returns how many replicas subscribe to the channel whose name ends so. */
  async function subscribersOf(end: string): Promise<number> {
    const channels = (await redis.command("pubsub", "channels", `onceward:wake:*${end}`)) as Buffer[];
    const [channel] = channels;
    if (channel === undefined) return 0;
    const [, count] = (await redis.command("pubsub", "numsub", channel)) as [Buffer, number];
    return count;
  }

  /**
   * Records the messages between replicas; `heard` returns them after all messages published by now have
   * arrived.
   */
  async function eavesdrop() {
    const listener = new Redis(redis.port);
    onTestFinished(() => listener.disconnect());
    const messages: string[] = [];
    listener.on("pmessage", (_, channel: string) => messages.push(channel));
    await listener.psubscribe("onceward:wake:*", "marker:*");
    return {
      async heard(part: string) {
        const marker = `marker:${messages.length}`;
        await redis.command("publish", marker, "");
        await expect.poll(() => messages, PATIENCE).toContain(marker);
        return messages.filter((channel) => channel.includes(part));
      },
    };
  }

  test("is notified of the completion", async () => {
    const { holder, held, waiting } = await holderAndWaiter();
    await holder.complete({ ...held, result: success("done") });
    expect((await waiting).outcome).toMatchObject({ case: "completed", value: { result: success("done") } });
    await expect.poll(() => subscribersOf(ORDER.key), PATIENCE).toBe(0);
  });

  test("is notified of the release", async () => {
    const { holder, held, waiting } = await holderAndWaiter();
    await holder.release(held);
    expect((await waiting).outcome.case).toBe("claimed");
  });

  test("is notified after Redis was killed and restarted while it waited", async () => {
    const { holder, held, waiting } = await holderAndWaiter();
    await redis.kill();
    await redis.restart();
    await expect.poll(() => subscribersOf("waiters"), PATIENCE).toBe(2);
    await expect.poll(() => subscribersOf(ORDER.key), PATIENCE).toBe(1);
    const { heard } = await eavesdrop();
    await expect.poll(() => heard("waiters"), PATIENCE).not.toEqual([]);
    await holder.complete({ ...held, result: success("done") });
    expect((await waiting).outcome.case).toBe("completed");
  });

  test("learns of the completion by polling without Redis", async () => {
    const { holder, held, waiting } = await holderAndWaiter({});
    await redis.kill();
    await holder.complete({ ...held, result: success("done") });
    expect((await waiting).outcome.case).toBe("completed");
    await redis.restart();
  });

  test("makes other replicas publish settlements, which they do not without remote waiters", async () => {
    const { near, far, holder, held, waiting, tenant } = await holderAndWaiter();
    const { heard } = await eavesdrop();
    await holder.complete({ ...held, result: success("done") });
    await waiting;
    expect(await heard("settled")).toHaveLength(1);
    await Promise.all([near.stop(), far.stop()]);
    const alone = await start();
    const client = connectClient(alone, tenant.apiKey);
    const own = { ...ORDER, key: "order-2" };
    const { fencingToken } = await grant(client, own);
    const waitingHere = client.claim({ ...own, wait: seconds(60) });
    await untilWaiting(alone, 1);
    await client.complete({ ...own, fencingToken, result: success("done") });
    expect((await waitingHere).outcome.case).toBe("completed");
    expect(await heard("settled")).toHaveLength(1);
  });

  test("is one of 2,000, which cost a few statements a second and end with their callers", {
    timeout: 120_000,
  }, async () => {
    const server = await start();
    const tenant = await createTenant(database);
    const client = connectClient(server, tenant.apiKey);
    await grant(client, { key: "template", lease: seconds(600) });
    await copyRecord(database, tenant, "template", { count: MANY, keySql: "'waits-' || n" });
    const clients = Array.from({ length: 10 }, () => connectClient(server, tenant.apiKey));
    const leaving = new AbortController();
    const waiting = Array.from({ length: MANY }, (_, index) => {
      const call = clients[index % clients.length]?.claim(
        { ...WAITING, key: `waits-${index + 1}`, lease: seconds(600) },
        index % 2 ? { signal: leaving.signal } : {},
      );
      if (call === undefined) throw new Error("a client is missing");
      return index % 2 ? errorOf(call).then(({ code }) => code) : call;
    });
    await untilWaiting(server, MANY);
    const windowMs = 1500;
    const beganAtMs = performance.now();
    const { find_resolved_records: looks = 0, ...others } = await statementsDuring(server, () =>
      pause(windowMs),
    );
    const tookMs = performance.now() - beganAtMs;
    expect(looks).toBeGreaterThan(0);
    expect(looks).toBeLessThanOrEqual((20 * tookMs) / 1000);
    expect(Object.keys(others).filter((name) => !name.startsWith("read_"))).toEqual([]);
    leaving.abort();
    await untilWaiting(server, MANY / 2);
    await endLeases(database, tenant);
    const answers = await Promise.all(waiting);
    expect(answers.filter((answer) => answer === "Canceled")).toHaveLength(MANY / 2);
    expect(grantsAmong(answers.filter((answer) => typeof answer !== "string"))).toHaveLength(MANY / 2);
  });

  test("on the replica that completes it is answered from that replica's cache", async () => {
    const server = await start(NEVER_LOOK, { ONCEWARD_CACHE_MIB: "1" });
    const client = connectClient(server, (await createTenant(database)).apiKey);
    const { fencingToken } = await grant(client);
    const waiting = Array.from({ length: 20 }, () => client.claim(WAITING));
    await untilWaiting(server, 20);
    const statements = await statementsDuring(server, async () => {
      await client.complete({ ...ORDER, fencingToken, result: success("done") });
      for (const { outcome } of await Promise.all(waiting)) {
        expect(outcome).toMatchObject({ case: "completed", value: { result: success("done") } });
      }
    });
    expect(statements).toEqual({ complete_records: 1 });
  });
});
