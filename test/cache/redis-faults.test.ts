import { expect, onTestFinished, test } from "vitest";
import { connectClient, type IdempotencyClient } from "../support/calls/clients.ts";
import { complete, ORDER } from "../support/calls/verbs.ts";
import { statementsDuring } from "../support/database/statements.ts";
import { useDatabase } from "../support/database/use-database.ts";
import { startTcpProxy, type TcpProxy } from "../support/network/tcp-proxy.ts";
import { describeWithRedis, freePort, startRedis, type TestRedis } from "../support/redis/redis.ts";
import {
  claimFromRedis,
  copiesOf,
  countLooks,
  type Repeats,
  repeatOften,
  startRepeats,
  untilBypassed,
} from "../support/servers/fast-path.ts";
import type { TestServer } from "../support/servers/server.ts";
import { createTenant, type TestTenant } from "../support/servers/tenants.ts";
import { startServerOfTest } from "../support/servers/use-server.ts";

/** Number of keys that are completed and repeated before, during and after a fault. */
const SOME_KEYS = 50;
const CALLERS = 8;
/** What happens to Redis, or to the way to it, for a while. */
interface Fault {
  begin(): unknown;
  end(): unknown;
}

const STATEMENTS_OF_CLAIMS = /^(claim|read|take_over)_/;

describeWithRedis("Redis", () => {
  const database = useDatabase();
  let tenant: TestTenant;

  async function startOwnRedis(args: readonly string[] = []): Promise<TestRedis> {
    const redis = await startRedis({ args });
    onTestFinished(() => redis.stop());
    return redis;
  }

  /** Starts a server without a memory cache, and a client in a namespace with frequent repeats. */
  async function startServer(
    redisUrl: string,
  ): Promise<{ readonly server: TestServer; readonly client: IdempotencyClient }> {
    tenant = await createTenant(database);
    const server = await startServerOfTest(database.url, { REDIS_URL: redisUrl });
    const client = connectClient(server, tenant.apiKey);
    await repeatOften(client);
    return { server, client };
  }

  function startLoad(server: TestServer): Repeats {
    const clients = Array.from({ length: CALLERS }, () => connectClient(server, tenant.apiKey));
    return startRepeats(clients, ORDER.namespace);
  }

  const FAULTS: Readonly<Record<string, (redis: TestRedis, proxy: TcpProxy) => Fault>> = {
    "that is frozen": (redis) => ({
      begin: () => redis.signal("SIGSTOP"),
      end: () => redis.signal("SIGCONT"),
    }),
    "that is killed and restarts empty": (redis) => ({
      begin: () => redis.kill(),
      end: () => redis.restart(),
    }),
    "behind a dead network": (_, proxy) => ({
      begin: () => proxy.setMode("swallow"),
      end: () => proxy.setMode("forward"),
    }),
  };

  test.each(Object.keys(FAULTS))(
    "%s fails no call, is bypassed, and is used again afterwards",
    async (name) => {
      const redis = await startOwnRedis();
      const proxy = await startTcpProxy(redis.port);
      onTestFinished(() => proxy.close());
      const fault = FAULTS[name]?.(redis, proxy);
      const { server, client } = await startServer(`redis://127.0.0.1:${proxy.port}`);
      const load = startLoad(server);
      await load.more(SOME_KEYS);
      await fault?.begin();
      await untilBypassed(server, true);
      const unanswered = await countLooks(server, "redis", "unanswered");
      await load.more(SOME_KEYS);
      if (name === "that is frozen")
        expect(await countLooks(server, "redis", "unanswered")).toBeGreaterThan(unanswered);
      await fault?.end();
      await untilBypassed(server, false);
      await load.more(SOME_KEYS);
      await load.stop();
      await complete(client);
      await claimFromRedis(server, client);
    },
  );

  test("that is frozen while no call comes is used again when it resumes", async () => {
    const redis = await startOwnRedis();
    const { server, client } = await startServer(redis.url);
    redis.signal("SIGSTOP");
    await complete(client);
    await expect
      .poll(async () => {
        await client.claim(ORDER);
        return countLooks(server, "redis", "unanswered");
      })
      .toBeGreaterThan(3);
    await untilBypassed(server, true);
    redis.signal("SIGCONT");
    await untilBypassed(server, false);
  });

  test("that is emptied under load fails no call, and many repeats of one key cost few statements", async () => {
    const redis = await startOwnRedis();
    const { server, client } = await startServer(redis.url);
    await complete(client);
    const load = startLoad(server);
    for (let round = 0; round < 5; round++) {
      await load.more(10);
      await redis.command("flushall");
    }
    await load.stop();
    await redis.command("flushall");
    const crowd = () => Promise.all(Array.from({ length: 500 }, () => client.claim(ORDER)));
    const statements = await statementsDuring(server, crowd);
    // Those of background tasks depend on how long the crowd takes.
    const ofCalls = Object.entries(statements).filter(([name]) => STATEMENTS_OF_CLAIMS.test(name));
    expect(ofCalls.reduce((sum, [, count]) => sum + count, 0)).toBeLessThanOrEqual(50);
  });

  test.each([
    ["became a read-only replica", ["replicaof", "127.0.0.1", "1"], ["replicaof", "no", "one"]],
    ["has no memory left", ["config", "set", "maxmemory", "1"], ["config", "set", "maxmemory", "0"]],
  ])(
    "that %s fails no call, and stores completions again afterwards",
    async (_, [name = "", ...args], back) => {
      const redis = await startOwnRedis();
      const { server, client } = await startServer(redis.url);
      const load = startLoad(server);
      await load.more(SOME_KEYS);
      await redis.command(name, ...args);
      await load.more(SOME_KEYS);
      const [backName = "", ...backArgs] = back;
      await redis.command(backName, ...backArgs);
      await untilBypassed(server, false);
      await load.more(SOME_KEYS);
      await load.stop();
      await complete(client);
      await expect
        .poll(
          async () => {
            await client.claim(ORDER);
            return redis.command(
              "exists",
              ...((await redis.command("keys", `*${ORDER.key}`)) as Buffer[]),
              "none",
            );
          },
          { timeout: 30_000 },
        )
        .toBe(1);
      await claimFromRedis(server, client);
    },
  );

  test("that starts after the server is used from then on", async () => {
    const port = await freePort();
    const { server, client } = await startServer(`redis://127.0.0.1:${port}`);
    await complete(client);
    await untilBypassed(server, true);
    const redis = await startRedis({ port });
    onTestFinished(() => redis.stop());
    await untilBypassed(server, false);
    await claimFromRedis(server, client);
  });

  test("that refuses the password is bypassed, and the log does not contain the password", async () => {
    const redis = await startRedis({ args: ["--requirepass", "right"], connect: { password: "right" } });
    onTestFinished(() => redis.stop());
    const { server, client } = await startServer(`redis://:wrong-pass@127.0.0.1:${redis.port}`);
    await complete(client);
    expect((await client.claim(ORDER)).outcome.case).toBe("completed");
    await untilBypassed(server, true);
    expect(await countLooks(server, "redis", "hit")).toBe(0);
    expect(JSON.stringify(server.log)).not.toContain("wrong-pass");
    expect(server.log.filter(({ msg }) => String(msg).startsWith("Redis failed"))).toHaveLength(1);
  });

  test("works with an ACL user that has only the documented rights", async () => {
    const redis = await startOwnRedis();
    const rights = [
      "~onceward:*",
      "&onceward:*",
      "+get",
      "+set",
      "+publish",
      "+subscribe",
      "+unsubscribe",
      "+info",
    ];
    await redis.command("acl", "setuser", "onceward", "on", ">p@ss", ...rights);
    const { server, client } = await startServer(`redis://onceward:p%40ss@127.0.0.1:${redis.port}`);
    await complete(client);
    // A copy that Redis does not take within 50 ms is dropped, and stored again by a repeat.
    await claimFromRedis(server, client);
    await copiesOf(redis, ORDER.key, 1);
    await untilBypassed(server, false);
  });

  test("that allows an ACL user nothing is bypassed, and no call fails", async () => {
    const redis = await startOwnRedis();
    await redis.command("acl", "setuser", "nobody", "on", ">secret", "+info");
    const { server } = await startServer(`redis://nobody:secret@127.0.0.1:${redis.port}`);
    const load = startLoad(server);
    await load.more(SOME_KEYS);
    await untilBypassed(server, true);
    await load.stop();
  });
});
