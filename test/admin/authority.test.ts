import { describe, expect, onTestFinished, test } from "vitest";
import { ErrorReason } from "../../clients/typescript/src/gen/onceward/v1/errors_pb.ts";
import { Policy_OnLeaseExpiry } from "../../clients/typescript/src/gen/onceward/v1/policy_pb.ts";
import { parseApiKey } from "../../server/src/access/api-key.ts";
import { type AdministeredTenant, createWorld } from "../support/calls/admin.ts";
import { connectClient, type IdempotencyClient, type TransportName } from "../support/calls/clients.ts";
import { errorOf } from "../support/calls/errors.ts";
import { endLeases, granted } from "../support/calls/records.ts";
import { grant, ORDER, seconds } from "../support/calls/verbs.ts";
import { runRecordJobs } from "../support/database/jobs.ts";
import { countRows, forgetRecords } from "../support/database/time.ts";
import { type OpenBatchStream, openBatchStream } from "../support/network/open-batch-stream.ts";
import { connectHttp2 } from "../support/network/raw-grpc.ts";
import { ONE_TRANSPORT } from "../support/network/transports-under-test.ts";
import { startTestServer, type TestServer } from "../support/servers/server.ts";
import { createApiKey, type PolicyColumns } from "../support/servers/tenants.ts";
import { useServer } from "../support/servers/use-server.ts";
import { untilWaiting } from "../support/servers/waiters.ts";

/** A tenant, and a caller of it with a new key. */
interface Bearer extends AdministeredTenant {
  readonly key: string;
  readonly client: IdempotencyClient;
}

/** Twice the bound that the contract publishes: what is refused later is refused after a claim that waited for as long. */
const WITNESS_WAIT_S = 20;

/** Loads credentials and tenants at every call, so that what a test changes in SQL holds at once. */
const { database, server } = useServer({}, { waiterTickMs: 20, credentialAgeMs: 0 });

/**
 * What ends a credential's authority over ORDER, and the reason that its calls are refused for from then on.
 */
const ENDINGS: Readonly<Record<string, { end(bearer: Bearer): Promise<unknown>; reason: string }>> = {
  "its key was revoked": {
    end: ({ admin, key }) => admin.revokeApiKey({ id: parseApiKey(key)?.id ?? "" }),
    reason: "CREDENTIAL_INVALID",
  },
  "its key has expired": {
    end: ({ key }) =>
      database.query("update api_keys set expires_at = now() where id = $1", [parseApiKey(key)?.id]),
    reason: "CREDENTIAL_INVALID",
  },
  "its key was limited to other namespaces": {
    end: ({ key }) =>
      database.query("update api_keys set namespaces = '{mails}' where id = $1", [parseApiKey(key)?.id]),
    reason: "NAMESPACE_DENIED",
  },
  "its tenant was suspended": {
    end: async ({ tenant }) => (await operator()).suspendTenant({ name: tenant.name }),
    reason: "TENANT_SUSPENDED",
  },
  "its tenant is moving": {
    end: ({ tenant }) => database.query("update tenants set moving_since = now() where id = $1", [tenant.id]),
    reason: "TENANT_MOVING",
  },
  "its tenant was deleted": {
    end: async ({ tenant }) => (await operator()).deleteTenant({ name: tenant.name }),
    reason: "CREDENTIAL_INVALID",
  },
};

/** Changes of a tenant's record, made in SQL, that wake a waiting claim. */
const WAKINGS: Readonly<Record<string, (bearer: Bearer) => Promise<unknown>>> = {
  "was released": ({ tenant }) =>
    database.query("update records set state = 3, settled_at = now() where tenant_id = $1", [tenant.id]),
  "was completed": ({ tenant }) =>
    database.query(
      `update records set state = 2, settled_at = now(), result_kind = 1, result_payload = 'done',
              result_digest = decode(repeat('00', 32), 'hex'), result_expires_at = expires_at
        where tenant_id = $1`,
      [tenant.id],
    ),
  "lost its lease": ({ tenant }) => endLeases(database, tenant),
  "was forgotten": ({ tenant }) => forgetRecords(database, tenant),
};

function operator() {
  return createWorld(database, server).operator();
}

/** A tenant whose ORDER another caller holds. */
async function newBearer(transport: TransportName, columns: PolicyColumns = {}): Promise<Bearer> {
  const administered = await createWorld(database, server, transport).administeredTenant(columns);
  await grant(administered.caller, { owner: "holder" });
  const key = await createApiKey(database, { tenantId: administered.tenant.id, role: "CALLER" });
  return { ...administered, key, client: connectClient(server, key, transport) };
}

interface Waiting {
  readonly bearer: Bearer;
  readonly answer: Promise<unknown>;
  readonly what: string;
  readonly end: (bearer: Bearer) => Promise<unknown>;
  readonly reason: string;
}

/** Claims that wait, one for each way in which authority ends. */
async function waitForEachEnding(transport: TransportName, waitS: number): Promise<readonly Waiting[]> {
  const waiting = await Promise.all(
    Object.entries(ENDINGS).map(async ([what, ending]) => {
      const bearer = await newBearer(transport);
      const answer = errorOf(bearer.client.claim({ ...ORDER, owner: "waiter", wait: seconds(waitS) }));
      answer.catch(() => {});
      return { bearer, answer, what, ...ending };
    }),
  );
  await untilWaiting(server, waiting.length);
  return waiting;
}

async function endAll(waiting: readonly Waiting[]): Promise<void> {
  await Promise.all(waiting.map(({ bearer, end }) => end(bearer)));
}

async function expectRefused(waiting: readonly Waiting[]): Promise<void> {
  const answers = await Promise.all(
    waiting.map(async ({ what, answer }) => ({ what, answer: await answer })),
  );
  expect(answers).toMatchObject(waiting.map(({ what, reason }) => ({ what, answer: { reason } })));
  const granted = await database.query("select tenant_id from records where owner = 'waiter'");
  expect(granted).toEqual([]);
}

/**
 * Fails if a claim that begins to wait now, and keeps its authority, is answered first. Order, unlike a time, does not depend on
 * how busy the machine is: the same process answers both.
 */
async function answeredBeforeWitness(answers: Promise<unknown>, at: TestServer) {
  const { caller } = await createWorld(database, at).administeredTenant();
  await grant(caller, { owner: "holder" });
  const leaving = new AbortController();
  const witness = caller
    .claim({ ...ORDER, wait: seconds(WITNESS_WAIT_S) }, { signal: leaving.signal })
    .then(() => "witness")
    .catch(() => "left");
  expect(await Promise.race([answers.then(() => "refusals"), witness])).toBe("refusals");
  leaving.abort();
  await witness;
}

describe.each(ONE_TRANSPORT)("A claim that waits, over %s, whose authority has ended", (transport) => {
  test.each(Object.entries(WAKINGS))("is refused when its record %s", async (_what, wake) => {
    const waiting = await waitForEachEnding(transport, 60);
    await endAll(waiting);
    await Promise.all(waiting.map(({ bearer }) => wake(bearer)));
    await expectRefused(waiting);
  });

  test("is refused when its wait ends", async () => {
    const waiting = await waitForEachEnding(transport, 1.5);
    await endAll(waiting);
    await expectRefused(waiting);
  });

  test("is refused before its wait ends, while its record is in progress", async () => {
    const waiting = await waitForEachEnding(transport, 60);
    await endAll(waiting);
    await answeredBeforeWitness(expectRefused(waiting), server);
  });

  test("leaves no row of a removed tenant", async () => {
    const bearer = await newBearer(transport);
    const answer = errorOf(bearer.client.claim({ ...ORDER, wait: seconds(60) }));
    await untilWaiting(server, 1);
    await (await operator()).deleteTenant({ name: bearer.tenant.name });
    await runRecordJobs(database);
    expect(await answer).toMatchObject({ reason: "CREDENTIAL_INVALID" });
    expect(await countRows(database, bearer.tenant)).toBe(0);
  });
});

test("A waiting claim is refused within 10 s after its key was revoked directly in the database", async () => {
  const remembering = await startTestServer(database.url);
  onTestFinished(() => remembering.stop());
  const { tenant, caller } = await createWorld(database, remembering).administeredTenant();
  await grant(caller);
  const answer = errorOf(caller.claim({ ...ORDER, wait: seconds(60) }));
  await untilWaiting(remembering, 1);
  await database.query("update api_keys set revoked_at = now() where tenant_id = $1", [tenant.id]);
  await answeredBeforeWitness(answer, remembering);
  expect(await answer).toMatchObject({ reason: "CREDENTIAL_INVALID" });
});

describe.each(ONE_TRANSPORT)("A claim that waits, over %s, whose policy has changed", (transport) => {
  /** How a waiter's claim is stamped that is granted after `change`. */
  async function stampedAfter(change: (bearer: Bearer) => Promise<unknown>) {
    const bearer = await newBearer(transport);
    const answer = bearer.client.claim({ ...ORDER, owner: "waiter", wait: seconds(60) });
    await untilWaiting(server, 1);
    await change(bearer);
    await WAKINGS["was released"]?.(bearer);
    granted(await answer);
    const [row] = await database.query(
      "select holds_on_lease_expiry as holds, key_retention_s from records where tenant_id = $1",
      [bearer.tenant.id],
    );
    return row;
  }

  test("is granted under the new policy for expired leases", async () => {
    const policy = { onLeaseExpiry: Policy_OnLeaseExpiry.HOLD };
    expect(await stampedAfter(({ admin }) => admin.updateTenant({ tenant: { policy } }))).toMatchObject({
      holds: true,
    });
  });

  test("is granted with the new retention after existing records were re-stamped", async () => {
    const stamped = await stampedAfter(async ({ admin }) => {
      await admin.updateTenant({
        tenant: { policy: { keyRetention: seconds(3600) } },
        applyToExisting: true,
      });
      await runRecordJobs(database);
    });
    expect(stamped).toMatchObject({ key_retention_s: 3600 });
  });

  test("is refused a claim that the new policy does not allow", async () => {
    const bearer = await newBearer(transport);
    const answer = errorOf(bearer.client.claim({ ...ORDER, wait: seconds(60) }));
    await untilWaiting(server, 1);
    await bearer.admin.updateTenant({ tenant: { policy: { requireFingerprint: true } } });
    await WAKINGS["was released"]?.(bearer);
    expect(await answer).toMatchObject({ reason: "INVALID_REQUEST", fields: ["fingerprint"] });
  });

  test("is limited by the current quota of calls", async () => {
    const bearer = await newBearer(transport, { quota_concurrent_calls: 2 });
    const wait = () => errorOf(bearer.client.claim({ ...ORDER, wait: seconds(60) }));
    const refusals = [wait(), wait()];
    await untilWaiting(server, 2);
    await (await operator()).updateTenantLimits({ name: bearer.tenant.name, quotas: { concurrentCalls: 1 } });
    await WAKINGS["was completed"]?.(bearer);
    expect(await Promise.any(refusals)).toMatchObject({ reason: "QUOTA_CONCURRENCY" });
    await Promise.allSettled(refusals);
  });
});

describe("A stream of batches whose credential is no longer valid", () => {
  async function openedBy({ key }: Bearer): Promise<OpenBatchStream> {
    const session = await connectHttp2(server.grpcPort);
    onTestFinished(() => session.destroy());
    return openBatchStream(session, key);
  }

  function lookUp(id: number) {
    return { id, items: [{ request: { case: "lookup" as const, value: ORDER } }] };
  }

  test.each(Object.entries(ENDINGS))("is refused its next batch when %s", async (_what, { end, reason }) => {
    const bearer = await newBearer("native gRPC");
    const stream = await openedBy(bearer);
    stream.send(lookUp(1));
    expect((await stream.answerTo(1)).items.map(({ response }) => response.case)).toEqual(["lookup"]);
    await end(bearer);
    stream.send(lookUp(2));
    const { items, error } = await stream.answerTo(2);
    const [item] = items;
    const refusal = item?.response.case === "error" ? item.response.value : error;
    expect(refusal?.reason).toBe(ErrorReason[reason as keyof typeof ErrorReason]);
  });
});
