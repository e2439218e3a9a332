import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  onTestFinished,
  test,
  vi,
} from "vitest";
import { ErrorReason } from "../../clients/typescript/src/gen/onceward/v1/errors_pb.ts";
import { Policy_OnLeaseExpiry } from "../../clients/typescript/src/gen/onceward/v1/policy_pb.ts";
import { parseApiKey } from "../../server/src/auth/api-key.ts";
import { type AdministeredTenant, createWorld } from "../helpers/admin.ts";
import { connectClient, type IdempotencyClient, type TransportName } from "../helpers/clients.ts";
import { createTestDatabase, type TestDatabase } from "../helpers/database.ts";
import { proxyDatabase } from "../helpers/database-proxy.ts";
import { errorOf } from "../helpers/errors.ts";
import { runRecordJobs } from "../helpers/jobs.ts";
import { type OpenBatchStream, openBatchStream } from "../helpers/open-batch-stream.ts";
import { connectHttp2 } from "../helpers/raw-grpc.ts";
import { endLeases, granted } from "../helpers/records.ts";
import { startTestServer, type TestServer } from "../helpers/server.ts";
import { createApiKey, type PolicyColumns, type TestTenant } from "../helpers/tenants.ts";
import { countRows, forgetRecords } from "../helpers/time.ts";
import { transportsUnderTest } from "../helpers/transports-under-test.ts";
import { grant, ORDER, seconds } from "../helpers/verbs.ts";
import { untilWaiting } from "../helpers/waiters.ts";

/** A tenant, and a caller of it with a key of its own. */
interface Bearer extends AdministeredTenant {
  readonly key: string;
  readonly client: IdempotencyClient;
}

/** The bound that the contract publishes. */
const FOLLOWS_WITHIN_MS = 10_000;

let database: TestDatabase;
/** Loads credentials and tenants at every call, so that what a test changes in SQL holds at once. */
let server: TestServer;

beforeAll(async () => {
  database = await createTestDatabase();
  server = await startTestServer(database.url, {}, { waiterTickMs: 20, credentialAgeMs: 0 });
});

afterAll(async () => {
  await server?.stop();
  await database?.drop();
});

/** What ends a credential's authority over ORDER, and the reason that its calls are refused for from then on. */
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
  "its tenant was deleted": {
    end: async ({ tenant }) => (await operator()).deleteTenant({ name: tenant.name }),
    reason: "CREDENTIAL_INVALID",
  },
};

/** What wakes a claim that waits for a tenant's record, behind the service's back. */
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

/** A tenant whose ORDER somebody else holds. */
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

describe.each(transportsUnderTest())(
  "A claim that waits, over %s, whose authority has ended",
  (transport) => {
    test.each(Object.entries(WAKINGS))("is refused when its record %s", async (_what, wake) => {
      const waiting = await waitForEachEnding(transport, 60);
      await endAll(waiting);
      await Promise.all(waiting.map(({ bearer }) => wake(bearer)));
      await expectRefused(waiting);
    });

    test("is refused when its wait is over", async () => {
      const waiting = await waitForEachEnding(transport, 1.5);
      await endAll(waiting);
      await expectRefused(waiting);
    });

    test("is refused before its wait is over, though its record stays in progress", async () => {
      const waiting = await waitForEachEnding(transport, 60);
      const endedAtMs = performance.now();
      await endAll(waiting);
      await expectRefused(waiting);
      expect(performance.now() - endedAtMs).toBeLessThan(FOLLOWS_WITHIN_MS);
    });

    test("leaves no row of a tenant that has gone", async () => {
      const bearer = await newBearer(transport);
      const answer = errorOf(bearer.client.claim({ ...ORDER, wait: seconds(60) }));
      await untilWaiting(server, 1);
      await (await operator()).deleteTenant({ name: bearer.tenant.name });
      await runRecordJobs(database);
      expect(await answer).toMatchObject({ reason: "CREDENTIAL_INVALID" });
      expect(await countRows(database, bearer.tenant)).toBe(0);
    });
  },
);

describe.each(transportsUnderTest())("A claim that waits, over %s, whose policy has changed", (transport) => {
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

  test("is granted under the new policy for leases that run out", async () => {
    const policy = { onLeaseExpiry: Policy_OnLeaseExpiry.HOLD };
    expect(await stampedAfter(({ admin }) => admin.updateTenant({ tenant: { policy } }))).toMatchObject({
      holds: true,
    });
  });

  test("is granted with the new retention, once what is there was stamped with it", async () => {
    const stamped = await stampedAfter(async ({ admin }) => {
      await admin.updateTenant({
        tenant: { policy: { keyRetention: seconds(3600) } },
        applyToExisting: true,
      });
      await runRecordJobs(database);
    });
    expect(stamped).toMatchObject({ key_retention_s: 3600 });
  });

  test("is refused what the new policy does not allow", async () => {
    const bearer = await newBearer(transport);
    const answer = errorOf(bearer.client.claim({ ...ORDER, wait: seconds(60) }));
    await untilWaiting(server, 1);
    await bearer.admin.updateTenant({ tenant: { policy: { requireFingerprint: true } } });
    await WAKINGS["was released"]?.(bearer);
    expect(await answer).toMatchObject({ reason: "INVALID_REQUEST", fields: ["fingerprint"] });
  });

  test("is held to the quota of calls that is in force", async () => {
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

describe("A stream of batches whose authority has ended", () => {
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

describe("A call that is held up before the database for longer than its authority lasts", () => {
  beforeEach(() => {
    // Only this clock: everything else takes its real time.
    vi.useFakeTimers({ toFake: ["performance"] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  /** A caller whose record is ORDER, of a server whose way to the database can be held. */
  async function newHeldUp() {
    const { proxy, url } = await proxyDatabase(database.url);
    const own = await startTestServer(url);
    onTestFinished(() => own.stop());
    const { tenant, caller, admin, adminKey } = await createWorld(database, own).administeredTenant();
    const { fencingToken } = await grant(caller, { owner: "holder" });
    await admin.getTenant({});
    proxy.setMode("hold");
    return {
      tenant,
      admin,
      adminKey,
      client: caller,
      fencingToken,
      /** Sends a call, and waits until the server has taken it: it answers the next one on the connection without the database. */
      async send<Reply>(
        call: () => Promise<Reply>,
        next: () => Promise<unknown> = () => caller.claim({}),
      ): Promise<{ readonly ended: Promise<Reply> }> {
        const ended = call();
        ended.catch(() => {});
        expect(await errorOf(next())).toMatchObject({ reason: "INVALID_REQUEST" });
        return { ended };
      },
      async revokeAndGoOn(key = tenant.apiKey) {
        await database.query("update api_keys set revoked_at = now() where id = $1", [parseApiKey(key)?.id]);
        vi.advanceTimersByTime(FOLLOWS_WITHIN_MS);
        proxy.setMode("forward");
      },
    };
  }

  async function stateOf(tenant: TestTenant) {
    return database.query("select key, owner, state from records where tenant_id = $1 order by key", [
      tenant.id,
    ]);
  }
  const STILL_HELD = { key: ORDER.key, owner: "holder", state: 1 };
  const REVOKED = { reason: "CREDENTIAL_INVALID" };

  test("is refused by what holds then: a claim", async () => {
    const { client, tenant, send, revokeAndGoOn } = await newHeldUp();
    const claim = (key: string) => () => client.claim({ ...ORDER, key, owner: "late" });
    // As many statements as claims may have under way, so that the next one is queued.
    const ahead = [await send(claim("1")), await send(claim("2")), await send(claim("3"))];
    const late = await send(claim("4"));
    await revokeAndGoOn();
    expect(await errorOf(late.ended)).toMatchObject(REVOKED);
    await Promise.all(ahead.map(({ ended }) => ended));
    expect((await stateOf(tenant)).map(({ key }) => key)).toEqual(["1", "2", "3", ORDER.key]);
  });

  test("is refused by what holds then: a release", async () => {
    const { client, tenant, fencingToken, send, revokeAndGoOn } = await newHeldUp();
    await send(() => client.release({ ...ORDER, fencingToken: fencingToken + 1n }));
    const late = await send(() => client.release({ ...ORDER, fencingToken }));
    await revokeAndGoOn();
    expect(await errorOf(late.ended)).toMatchObject(REVOKED);
    expect(await stateOf(tenant)).toEqual([STILL_HELD]);
  });

  test("is refused by what holds then: what a batch does after something else on its key", async () => {
    const { client, tenant, fencingToken, send, revokeAndGoOn } = await newHeldUp();
    const held = { ...ORDER, fencingToken };
    const batch = await send(() =>
      client.batch({
        items: [
          { request: { case: "extendLease", value: held } },
          { request: { case: "release", value: held } },
        ],
      }),
    );
    await revokeAndGoOn();
    const { items } = await batch.ended;
    const [extension, release] = items.map(({ response }) => response);
    expect(extension?.case).toBe("extendLease");
    expect(release).toMatchObject({ case: "error", value: { reason: ErrorReason.CREDENTIAL_INVALID } });
    expect(await stateOf(tenant)).toEqual([STILL_HELD]);
  });

  test("is refused by what holds then: a change of a policy", async () => {
    const { admin, adminKey, tenant, send, revokeAndGoOn } = await newHeldUp();
    const policy = { requireFingerprint: true };
    const change = await send(
      () => admin.updateTenant({ tenant: { policy } }),
      () => admin.createApiKey({}),
    );
    await revokeAndGoOn(adminKey);
    expect(await errorOf(change.ended)).toMatchObject(REVOKED);
    const unchanged = [{ require_fingerprint: null }];
    const rows = "select require_fingerprint from tenants where id = $1";
    expect(await database.query(rows, [tenant.id])).toEqual(unchanged);
  });
});
