import { randomUUID } from "node:crypto";
import { beforeEach, expect, test } from "vitest";
import { connectClient } from "../support/calls/clients.ts";
import { bytes, complete, ORDER, success } from "../support/calls/verbs.ts";
import { statementsDuring } from "../support/database/statements.ts";
import { useDatabase } from "../support/database/use-database.ts";
import { describeWithRedis, useRedis } from "../support/redis/redis.ts";
import { encryptionKeys } from "../support/servers/encryption.ts";
import { claimFromRedis, copiesOf, countLooks, repeatOften } from "../support/servers/fast-path.ts";
import { createTenant } from "../support/servers/tenants.ts";
import { startServerOfTest } from "../support/servers/use-server.ts";

type Settings = Readonly<Record<string, string>>;

describeWithRedis("Cached completions, with encryption keys", () => {
  const redis = useRedis();
  const database = useDatabase();

  // A replica without the key of the last pass would not start.
  beforeEach(() => database.query("delete from encryption_pass"));

  /** Starts a replica with each of the settings, and connects a new tenant to both. */
  async function startReplicas(...settings: readonly [Settings, Settings]) {
    const tenant = await createTenant(database);
    const [one, two] = await Promise.all(
      settings.map(async (own) => {
        const server = await startServerOfTest(database.url, { REDIS_URL: redis.url, ...own });
        return { server, client: connectClient(server, tenant.apiKey) };
      }),
    );
    if (one === undefined || two === undefined) throw new Error("two replicas are started");
    await Promise.all([repeatOften(one.client), repeatOften(two.client)]);
    return { one, two };
  }

  /** Returns whether any value in Redis contains a text. */
  async function redisContains(text: string): Promise<boolean> {
    for (const name of (await redis.command("keys", "*")) as Buffer[]) {
      const value = (await redis.command("get", String(name))) as Buffer;
      if (value.includes(text)) return true;
    }
    return false;
  }

  test.each([
    ["with a key contains no", encryptionKeys(1), false],
    ["without a key contains the", {}, true],
  ])("Redis %s plain text", async (_, settings, contained) => {
    const { one } = await startReplicas(settings, settings);
    const canary = `canary-${randomUUID()}`;
    await complete(one.client, { ...success(canary), metadata: { trace: canary } });
    await copiesOf(redis, ORDER.key, 1);
    expect(await redisContains(canary)).toBe(contained);
    await redis.command("flushall");
  });

  test("a replica with the keys in another order replays from Redis, without a statement", async () => {
    const { one, two } = await startReplicas(encryptionKeys(1, 2), encryptionKeys(2, 1));
    await complete(one.client, success("paid"));
    await copiesOf(redis, ORDER.key, 1);
    const { outcome } = await claimFromRedis(two.server, two.client);
    expect(outcome).toMatchObject({ case: "completed", value: { result: { payload: bytes("paid") } } });
    await expect.poll(() => statementsDuring(two.server, () => two.client.claim(ORDER))).toEqual({});
    await redis.command("flushall");
  });

  test("a copy in memory answers without a statement", async () => {
    const memory = { ...encryptionKeys(1), ONCEWARD_CACHE_MIB: "4" };
    const { one } = await startReplicas(memory, memory);
    await complete(one.client, success("paid"));
    const hits = await countLooks(one.server, "memory", "hit");
    expect((await one.client.claim(ORDER)).outcome).toMatchObject({
      value: { result: { payload: bytes("paid") } },
    });
    expect(await countLooks(one.server, "memory", "hit")).toBe(hits + 1);
    await redis.command("flushall");
  });

  test("an entry under an unknown key, or in another's place, is refused; Postgres answers", async () => {
    const { one, two } = await startReplicas(encryptionKeys(1), encryptionKeys("none", 1));
    await complete(one.client, success("paid"));
    const [name = ""] = await copiesOf(redis, ORDER.key, 1);
    const invalid = () => countLooks(two.server, "redis", "invalid");
    const before = await invalid();
    const replay = { outcome: { value: { result: { payload: bytes("paid") } } } };
    await expect
      .poll(async () => {
        expect(await two.client.claim(ORDER)).toMatchObject(replay);
        return invalid();
      })
      .toBeGreaterThan(before);

    // The replica that refused the entry has replaced it by its own: signed, in plain form.
    const refusedBefore = await countLooks(one.server, "redis", "invalid");
    await repeatOften(one.client);
    await redis.command("set", name, "another");
    await expect
      .poll(async () => {
        expect(await one.client.claim(ORDER)).toMatchObject(replay);
        return countLooks(one.server, "redis", "invalid");
      })
      .toBeGreaterThan(refusedBefore);
    await redis.command("flushall");
  });
});
