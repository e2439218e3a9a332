import { readFile } from "node:fs/promises";
import { setTimeout as pause } from "node:timers/promises";
import { expect, inject, onTestFinished, test } from "vitest";
import { connectRedis } from "../../server/src/records/replay/redis-connection.ts";
import { parseRedisUrl } from "../../server/src/records/replay/redis-url.ts";
import { connectClient, type IdempotencyClient } from "../support/calls/clients.ts";
import { granted } from "../support/calls/records.ts";
import { complete, ORDER, seconds, success } from "../support/calls/verbs.ts";
import { useDatabase } from "../support/database/use-database.ts";
import { makeCertificate } from "../support/network/certificates.ts";
import { describeWithRedis, freePort, startRedis } from "../support/redis/redis.ts";
import { startCluster, startSentinels, untilMaster } from "../support/redis/redis-topologies.ts";
import {
  claimFromRedis,
  countLooks,
  repeatOften,
  startRepeats,
  untilBypassed,
} from "../support/servers/fast-path.ts";
import { createTenant } from "../support/servers/tenants.ts";
import { startProcessOfTest, startServerOfTest } from "../support/servers/use-server.ts";
import { untilWaiting } from "../support/servers/waiters.ts";

const SOME_KEYS = 50;
/** Maximum time of a message between two replicas on a busy machine. */
const WAKING_MS = 1000;

describeWithRedis("Completions are cached", () => {
  const database = useDatabase();

  test.each([
    ["behind sentinels", startSentinels],
    ["in a cluster", startCluster],
  ])("%s, and a failover from a master that hangs fails no call", { timeout: 90_000 }, async (_, start) => {
    const redis = await start();
    onTestFinished(() => redis.stop());
    const { apiKey } = await createTenant(database);
    const server = await startServerOfTest(database.url, { REDIS_URL: redis.url });
    await untilBypassed(server, false);
    const clients = Array.from({ length: 8 }, () => connectClient(server, apiKey));
    const [client] = clients;
    if (client === undefined) throw new Error("a client is missing");
    await repeatOften(client);
    await complete(client);
    await claimFromRedis(server, client);
    const load = startRepeats(clients, ORDER.namespace);
    await load.more(SOME_KEYS);
    redis.master.signal("SIGSTOP");
    await load.more(SOME_KEYS);
    await untilMaster(redis.replica);
    await load.more(SOME_KEYS);
    await load.stop();
    await untilBypassed(server, false);
    // A third of the keys' slots belonged to the master that is gone.
    for (let index = 0; index < 12; index++) {
      const id = { ...ORDER, key: `after-${index}` };
      const { fencingToken } = granted(await client.claim(id));
      await client.complete({ ...id, fencingToken, result: success(id.key) });
      const { outcome } = await claimFromRedis(server, client, id);
      expect(outcome).toMatchObject({ value: { result: success(id.key) } });
    }
    await expectWaking(redis.url, client, apiKey);
  });

  /**
   * A replica that does not poll learns of settlements on another one. Single messages may be lost, but not
   * all.
   */
  async function expectWaking(redisUrl: string, near: IdempotencyClient, apiKey: string): Promise<void> {
    const replica = await startServerOfTest(database.url, { REDIS_URL: redisUrl }, { waiterTickMs: 600_000 });
    const far = connectClient(replica, apiKey);
    let round = 0;
    const isWoken = async () => {
      const id = { ...ORDER, key: `awaited-${++round}` };
      const { fencingToken } = granted(await near.claim(id));
      const leaving = new AbortController();
      const waiting = far.claim({ ...id, wait: seconds(60) }, { signal: leaving.signal }).then(
        ({ outcome }) => outcome.case,
        () => "gone",
      );
      await untilWaiting(replica, 1);
      await near.complete({ ...id, fencingToken, result: success("done") });
      const answer = await Promise.race([waiting, pause(WAKING_MS)]);
      leaving.abort();
      await waiting;
      return answer;
    };
    await expect.poll(isWoken, { timeout: 30_000 }).toBe("completed");
  }

  const testWithTls = test.runIf(inject("redisHasTls"));

  async function startTlsRedis() {
    const certificate = await makeCertificate();
    onTestFinished(certificate.remove);
    const { certificateFile, keyFile } = certificate;
    const port = await freePort();
    const files = [
      "--tls-cert-file",
      certificateFile,
      "--tls-key-file",
      keyFile,
      "--tls-ca-cert-file",
      certificateFile,
    ];
    const redis = await startRedis({
      port,
      args: ["--port", "0", "--tls-port", String(port), "--tls-auth-clients", "no", ...files],
      connect: { tls: { ca: await readFile(certificateFile) } },
    });
    onTestFinished(() => redis.stop());
    return { url: `rediss://127.0.0.1:${port}`, certificateFile };
  }

  testWithTls("over TLS, only on a server whose certificate is trusted", async () => {
    const { url: REDIS_URL, certificateFile } = await startTlsRedis();
    const tenant = await createTenant(database);
    const trusting = await startProcessOfTest(database.url, {
      REDIS_URL,
      ONCEWARD_CACHE_MIB: "0",
      NODE_EXTRA_CA_CERTS: certificateFile,
    });
    const client = connectClient(trusting, tenant.apiKey);
    await repeatOften(client);
    await complete(client);
    await claimFromRedis(trusting, client);
    const wary = await startServerOfTest(database.url, { REDIS_URL });
    const refusals = () =>
      wary.log.filter(({ err }) => String(JSON.stringify(err)).includes("self-signed certificate"));
    await expect.poll(refusals, { timeout: 30_000 }).not.toEqual([]);
    await untilBypassed(wary, true);
    expect((await connectClient(wary, tenant.apiKey).claim(ORDER)).outcome.case).toBe("completed");
    expect(await countLooks(wary, "redis", "hit")).toBe(0);
  });

  testWithTls("over TLS, and a handshake that fails while it is aborted ends no process", async () => {
    const { url } = await startTlsRedis();
    const target = parseRedisUrl(url);
    if (target === undefined) throw new Error("the URL is malformed");
    const uncaught: Error[] = [];
    const note = (error: Error) => uncaught.push(error);
    process.on("uncaughtException", note);
    onTestFinished(() => void process.off("uncaughtException", note));
    const refused: Error[] = [];
    for (const delayMs of [0, 2, 5]) {
      const connections = Array.from({ length: 30 }, () =>
        connectRedis(
          () => target,
          "commands",
          (error) => refused.push(error),
        ),
      );
      await pause(delayMs);
      for (const connection of connections) connection.disconnect();
      const open = () => connections.filter(({ status }) => status !== "end");
      await expect.poll(open).toEqual([]);
    }
    expect(refused.map(({ message }) => message)).toContainEqual(
      expect.stringContaining("self-signed certificate"),
    );
    expect(uncaught).toEqual([]);
  });
});
