import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, inject, onTestFinished, test } from "vitest";
import { startEmbeddedRedis } from "../../server/dev/embedded/redis.ts";
import { connectClient } from "../support/calls/clients.ts";
import { complete } from "../support/calls/verbs.ts";
import { createDatabaseOfTest } from "../support/database/database.ts";
import { newDir } from "../support/new-dir.ts";
import { describeWithRedis } from "../support/redis/redis.ts";
import { claimFromRedis, repeatOften } from "../support/servers/fast-path.ts";
import { createTenant } from "../support/servers/tenants.ts";
import { startServerOfTest } from "../support/servers/use-server.ts";

const MODULE = fileURLToPath(new URL("../../server/dev/embedded/redis.ts", import.meta.url));
const socketOf = (url: string) => url.replace("redis+unix://", "");

describeWithRedis("The embedded Redis", () => {
  const path = dirname(inject("redisProgram"));

  test("caches for a server, and leaves nothing behind when it is stopped", async () => {
    const redis = await startEmbeddedRedis(path);
    if (redis === undefined) throw new Error("there is no Redis");
    onTestFinished(redis.stop);
    const database = await createDatabaseOfTest();
    const server = await startServerOfTest(database.url, { REDIS_URL: redis.url });
    const client = connectClient(server, (await createTenant(database)).apiKey);
    await repeatOften(client);
    await complete(client);
    await claimFromRedis(server, client);
    await redis.stop();
    expect(existsSync(dirname(socketOf(redis.url)))).toBe(false);
  });

  test("ends with the process that started it, also when that process is killed", async () => {
    const script = `import(${JSON.stringify(MODULE)})
      .then(({ startEmbeddedRedis }) => startEmbeddedRedis(${JSON.stringify(path)}))
      .then(({ url }) => console.log(url));
      setInterval(() => {}, 1000);`;
    const starter = spawn(process.execPath, ["--eval", script], { stdio: ["ignore", "pipe", "inherit"] });
    const exited = once(starter, "exit");
    onTestFinished(async () => {
      starter.kill("SIGKILL");
      await exited;
    });
    const [line] = await once(starter.stdout, "data");
    const socket = socketOf(String(line).trim());
    expect(existsSync(socket)).toBe(true);
    starter.kill("SIGKILL");
    await expect.poll(() => existsSync(dirname(socket)), { timeout: 30_000 }).toBe(false);
  });

  test("does not start without a program on the PATH", async () => {
    const empty = await newDir();
    expect(await startEmbeddedRedis(empty)).toBeUndefined();
  });
});
