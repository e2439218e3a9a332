import { Code, type ConnectError } from "@connectrpc/connect";
import { createOnceward } from "@onceward/client";
import { expect, onTestFinished, test } from "vitest";
import { startLoad } from "../support/calls/claim-load.ts";
import { connectClient } from "../support/calls/clients.ts";
import { startRuns } from "../support/calls/runs.ts";
import { grant } from "../support/calls/verbs.ts";
import { useDatabase } from "../support/database/use-database.ts";
import { type Balancer, startBalancer } from "../support/deploy/balancer.ts";
import { describeWithPrograms } from "../support/deploy/programs.ts";
import { makeCertificate } from "../support/network/certificates.ts";
import { grpcJsClient } from "../support/network/grpc-js-client.ts";
import { findPreviousVersion, layOutVersion } from "../support/processes/previous-version.ts";
import { readMetrics } from "../support/servers/metrics.ts";
import type { ServerProcess } from "../support/servers/server-process.ts";
import { createTenant } from "../support/servers/tenants.ts";
import { startProcessOfTest } from "../support/servers/use-server.ts";

const previous = await findPreviousVersion();
if (previous === undefined) {
  process.stderr.write("The rolling update is skipped: the clone lacks the previous version.\n");
}

/** The delay that `docker-compose.yml` leaves as it is. */
const DRAIN_DELAY = { ONCEWARD_DRAIN_DELAY: "3s" };

const database = useDatabase();

/** Starts a replica, which is killed when the test ends. @param program another version of the server. */
const startReplica = (env: Readonly<Record<string, string>> = {}, program?: readonly string[]) =>
  startProcessOfTest(database.url, { ...DRAIN_DELAY, ...env }, program);

/** Starts a replica of this version at the addresses of one that has ended, as the balancer knows them. */
function startInPlaceOf({ grpcPort, httpPort, managementPort }: ServerProcess): Promise<ServerProcess> {
  return startReplica({
    ONCEWARD_GRPC_PORT: String(grpcPort),
    ONCEWARD_HTTP_PORT: String(httpPort),
    ONCEWARD_MANAGEMENT_PORT: String(managementPort),
  });
}

interface Fleet {
  readonly replicas: readonly [ServerProcess, ServerProcess];
  readonly balancer: Balancer;
  readonly apiKey: string;
}

/** Starts two replicas and a balancer, with a tenant. @param program another version of the server. */
async function startFleet(program?: readonly string[]): Promise<Fleet> {
  const replicas = await Promise.all([startReplica({}, program), startReplica({}, program)]);
  const balancer = await startBalancer(replicas);
  onTestFinished(() => balancer.stop());
  return { replicas, balancer, apiKey: (await createTenant(database)).apiKey };
}

/** Returns how many calls of an RPC a replica has answered with OK. */
async function answered(replica: ServerProcess, method: string): Promise<number> {
  const metrics = await readMetrics(replica);
  const [count = 0] = [...metrics].flatMap(([name, value]) => {
    const counts = name.startsWith("onceward_rpc_duration_seconds_count{");
    return counts && name.includes(`method="${method}"`) && name.includes('code="OK"') ? [value] : [];
  });
  return count;
}

describeWithPrograms(["haproxy"], "the balancer", () => {
  test("gives both replicas calls of one gRPC connection", async () => {
    const { replicas, balancer, apiKey } = await startFleet();
    const client = grpcJsClient(balancer, apiKey);
    onTestFinished(() => client.close());
    const load = startLoad(client, 8, "stop");
    await load.untilAcknowledged(400);
    await load.stop();
    expect(load.errors).toEqual([]);
    const counts = await Promise.all(replicas.map((replica) => answered(replica, "Claim")));
    expect(counts.reduce((sum, count) => sum + count)).toBe(load.acknowledged.size);
    // Of one connection's calls, a balancer of connections gives one replica none. A slower one gets fewer.
    for (const count of counts) expect(count).toBeGreaterThan(load.acknowledged.size / 20);
  });

  test("gives both replicas calls over Connect with JSON, and limits attempts to sign in", async () => {
    const { replicas, balancer, apiKey } = await startFleet();
    const load = startLoad(connectClient(balancer, apiKey, "Connect with JSON"), 8, "stop");
    await load.untilAcknowledged(100);
    await load.stop();
    expect(load.errors).toEqual([]);
    for (const replica of replicas) expect(await answered(replica, "Claim")).toBeGreaterThan(5);

    const signIn = () =>
      fetch(`http://127.0.0.1:${balancer.httpPort}/console/api/session`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ apiKey: "ow_wrong" }),
      });
    for (let attempts = 1; attempts <= 10; attempts += 1) expect((await signIn()).status).not.toBe(429);
    const refused = await signIn();
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "60"]);
    expect(await refused.json()).toMatchObject({ code: "resource_exhausted" });
    // Calls, and the page itself, are not counted.
    expect((await fetch(`http://127.0.0.1:${balancer.httpPort}/console/api/sign-in-options`)).status).toBe(
      200,
    );
  });

  test("a draining replica costs no run of the client and no call without retries", async () => {
    const { replicas, balancer, apiKey } = await startFleet();
    const [drained, other] = replicas;
    await using onceward = createOnceward({ address: `http://127.0.0.1:${balancer.grpcPort}`, apiKey });
    // Neither client retries: the balancer must give the replica no call that it would refuse.
    const overGrpc = startLoad(connectClient(balancer, apiKey), 8, "stop");
    const json = connectClient(balancer, (await createTenant(database)).apiKey, "Connect with JSON");
    const overHttp = startLoad(json, 8, "stop");
    const loads = [overGrpc, overHttp];
    const runs = startRuns(onceward);
    await Promise.all([runs.more(100), ...loads.map((load) => load.untilAcknowledged(100))]);
    drained.signal("SIGTERM");
    expect(await drained.exited).toBe(0);
    const more = loads.map((load) => load.untilAcknowledged(load.acknowledged.size + 100));
    await Promise.all([runs.more(100), ...more]);
    await Promise.all(loads.map((load) => load.stop()));
    expect(await runs.stop()).toEqual([]);
    expect(loads.flatMap(({ errors }) => errors).map(String)).toEqual([]);
    expect(await answered(other, "Claim")).toBeGreaterThan(100);
  });

  test("a killed replica costs no run; a gRPC client gets UNAVAILABLE or INTERNAL", async () => {
    const { replicas, balancer, apiKey } = await startFleet();
    const [killed] = replicas;
    await using onceward = createOnceward({ address: `http://127.0.0.1:${balancer.grpcPort}`, apiKey });
    const client = grpcJsClient(balancer, apiKey);
    onTestFinished(() => client.close());
    const load = startLoad(client, 32, "retry UNAVAILABLE");
    const runs = startRuns(onceward);
    await Promise.all([load.untilAcknowledged(100), runs.more(100)]);
    killed.signal("SIGKILL");
    await killed.exited;
    await Promise.all([load.untilAcknowledged(load.acknowledged.size + 100), runs.more(100)]);
    await load.stop();
    expect(await runs.stop()).toEqual([]);
    expect(
      load.errors.filter((error) => error.code !== Code.Unavailable && !isCut(error)).map(String),
    ).toEqual([]);

    // A replica that is back gets calls again.
    const again = await startInPlaceOf(killed);
    const calls = connectClient(balancer, apiKey);
    await expect
      .poll(async () => {
        await grant(calls, { key: crypto.randomUUID() });
        return await answered(again, "Claim");
      })
      .toBeGreaterThan(0);
  });

  test.runIf(previous)(
    "a rolling update from the previous version costs no run and no call without retries",
    async () => {
      const old = await layOutVersion(previous ?? "");
      onTestFinished(old.remove);
      const { replicas, balancer, apiKey } = await startFleet([old.main, "serve"]);
      await using onceward = createOnceward({ address: `http://127.0.0.1:${balancer.grpcPort}`, apiKey });
      const load = startLoad(connectClient(balancer, apiKey), 8, "stop");
      const runs = startRuns(onceward);
      await Promise.all([runs.more(100), load.untilAcknowledged(100)]);
      for (const replica of replicas) {
        replica.signal("SIGTERM");
        expect(await replica.exited).toBe(0);
        const next = await startInPlaceOf(replica);
        // The balancer has seen that it is ready: the other one can leave.
        await expect.poll(() => answered(next, "Claim")).toBeGreaterThan(0);
        await Promise.all([runs.more(100), load.untilAcknowledged(load.acknowledged.size + 100)]);
      }
      await load.stop();
      expect(await runs.stop()).toEqual([]);
      expect(load.errors.map(String)).toEqual([]);
    },
  );

  test("terminates TLS for gRPC, and for HTTP/1.1 and HTTP/2", async () => {
    const certificate = await makeCertificate();
    onTestFinished(() => certificate.remove());
    const replicas = await Promise.all([startReplica(), startReplica()]);
    const balancer = await startBalancer(replicas, certificate);
    onTestFinished(() => balancer.stop());
    const { apiKey } = await createTenant(database);
    const tls = { ca: certificate.pem.cert };
    await grant(connectClient(balancer, apiKey, "native gRPC", tls), { key: "grpc" });
    await grant(connectClient(balancer, apiKey, "Connect with JSON", tls), { key: "json" });
    await expect(grant(connectClient(balancer, apiKey), { key: "plain" })).rejects.toThrow();
  });
});

/**
 * Whether an answer ended between its headers and its trailers, because the replica died in between: HAProxy ends the
 * stream without a status, and grpc-js calls that INTERNAL.
 */
function isCut({ code, rawMessage }: ConnectError): boolean {
  return code === Code.Internal && rawMessage.includes("Call ended without gRPC status");
}
