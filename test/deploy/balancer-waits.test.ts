import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { MAX_WAIT_MS } from "../../server/src/domain/limits.ts";
import { connectClient, type IdempotencyClient } from "../support/calls/clients.ts";
import { grant, ORDER } from "../support/calls/verbs.ts";
import { createTestDatabase, type TestDatabase } from "../support/database/database.ts";
import { type Balancer, startBalancer } from "../support/deploy/balancer.ts";
import { describeWithPrograms } from "../support/deploy/programs.ts";
import { openBatchStream } from "../support/network/open-batch-stream.ts";
import { connectHttp2 } from "../support/network/raw-grpc.ts";
import { startTestServer, type TestServer } from "../support/servers/server.ts";
import { createTenant } from "../support/servers/tenants.ts";

/** These tests take a minute, and no processor. */
const LONGEST_WAIT_S = MAX_WAIT_MS / 1000;

/** Longer than the wait, which otherwise ends with the lease. */
const LONG_LEASE = { lease: { seconds: 300n } };

vi.setConfig({ testTimeout: 180_000 });

let database: TestDatabase;
let replicas: readonly [TestServer, TestServer];
let balancer: Balancer;

/** Replicas in this process: `describeWithPrograms` leaves the tests out before any of this starts. */
function useBalancer(): void {
  beforeAll(async () => {
    database = await createTestDatabase();
    replicas = [await startTestServer(database.url), await startTestServer(database.url)];
    balancer = await startBalancer(replicas);
  });
  afterAll(async () => {
    await balancer?.stop();
    for (const replica of replicas ?? []) await replica.stop();
    await database?.drop();
  });
}

/** Waits for ORDER, which is claimed, until the longest wait is over. */
async function waitForLong(client: IdempotencyClient): Promise<void> {
  const before = performance.now();
  const { outcome } = await client.claim({ ...ORDER, wait: { seconds: BigInt(LONGEST_WAIT_S) } });
  expect(outcome.case).toBe("inProgress");
  // A wait that ended early would show nothing.
  expect(performance.now() - before).toBeGreaterThan(LONGEST_WAIT_S * 1000 - 1000);
}

describeWithPrograms(["haproxy"], "the balancer's timeouts", () => {
  useBalancer();

  test.concurrent("end neither a Claim that waits a minute nor a silent BatchStream", async () => {
    const { apiKey } = await createTenant(database);
    const client = connectClient(balancer, apiKey);
    await grant(client, LONG_LEASE);
    const session = await connectHttp2(balancer.grpcPort);
    const batches = openBatchStream(session, apiKey);
    batches.send({ id: 1, items: [{ request: { case: "claim", value: ORDER } }] });
    await batches.answerTo(1);
    await waitForLong(client);
    // The replica ends it, after half a minute without a batch: with its status, not with a reset.
    expect(await batches.ended).toBe("OK");
    session.destroy();
  });

  test.concurrent("end no Claim that waits a minute over Connect with JSON", async () => {
    const { apiKey } = await createTenant(database);
    const client = connectClient(balancer, apiKey, "Connect with JSON");
    await grant(client, LONG_LEASE);
    await waitForLong(client);
  });
});
