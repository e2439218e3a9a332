import pg from "pg";
import { afterAll, beforeAll, test } from "vitest";
import { connectClient } from "../support/calls/clients.ts";
import { endLeases } from "../support/calls/records.ts";
import { grant, ORDER, success } from "../support/calls/verbs.ts";
import { setClockAhead, useSettableClock } from "../support/database/clock.ts";
import { createTestDatabase, type TestDatabase } from "../support/database/database.ts";
import { describeWithPrograms } from "../support/deploy/programs.ts";
import type { Scraped } from "../support/deploy/prometheus.ts";
import { type Rehearsal, repeatCalls, startClaims, startRehearsal } from "../support/deploy/rehearsal.ts";
import { makeCertificate, tlsSettings } from "../support/network/certificates.ts";
import { encryptionKeys } from "../support/servers/encryption.ts";
import { startTestServer, type TestServer } from "../support/servers/server.ts";
import { SERVER_PROGRAM, startServerProcess } from "../support/servers/server-process.ts";
import { createTenant, setNamespacePolicy } from "../support/servers/tenants.ts";

/** An hour until an alert fires is 15 s. */
const SPEED = 240;
const START_TIMEOUT_MS = 240_000;
const TUNING = { heartbeatMs: 200, degradedLookMs: 200 };

/** Where an incident happens: a database of its own, and what ends it. */
interface Site {
  readonly database: TestDatabase;
  defer(end: () => unknown): void;
  start(env?: Readonly<Record<string, string>>): Promise<TestServer>;
}

interface Incident {
  readonly job: string;
  readonly name: string;
  /** All alerts that come; under load on a busy machine, also those about slow claims. */
  readonly alerts: readonly string[];
  readonly hasLoad?: true;
  /** Returns the replica, and what happens once it is scraped. */
  begin(site: Site): Promise<{ readonly replica: Scraped; readonly happen?: () => Promise<unknown> }>;
}

const BURNS = ["OncewardErrorBudgetBurnFast", "OncewardErrorBudgetBurnSlow"];

const INCIDENTS: readonly Incident[] = [
  {
    job: "onceward-schema",
    name: "a rollout that stopped halfway",
    alerts: ["OncewardSchemaAhead"],
    async begin({ database, start }) {
      await database.query("insert into schema_migrations (name, run_on) values ('9999_newer', now())");
      return { replica: await start() };
    },
  },
  {
    job: "onceward-sweep",
    name: "a sweep that cannot delete behind a long transaction",
    alerts: ["OncewardSweepBehind"],
    async begin({ database, defer, start }) {
      const first = await start();
      await grant(connectClient(first, (await createTenant(database)).apiKey), ORDER);
      await database.query(
        "update records set expires_at = now() - interval '1 hour', sweep_at = now() - interval '1 hour'",
      );
      await holdOpen(database, defer, "select from records for update");
      return { replica: await start({ ONCEWARD_SWEEP_INTERVAL: "100ms" }) };
    },
  },
  {
    job: "onceward-quota",
    name: "a greedy tenant that has a quota",
    hasLoad: true,
    alerts: ["OncewardQuotaRefusals"],
    async begin({ database, defer, start }) {
      const replica = await start();
      const quota = { quota_operations_per_second: 1, quota_burst: 1 };
      const { apiKey } = await createTenant(database, quota);
      return { replica, happen: async () => defer(startClaims(connectClient(replica, apiKey))) };
    },
  },
  {
    job: "onceward-ambiguous",
    name: "a record that waits for a decision",
    alerts: ["OncewardAmbiguousBacklog"],
    async begin({ database, start }) {
      const replica = await start();
      const tenant = await createTenant(database);
      await setNamespacePolicy(database, tenant, ORDER.namespace, { on_lease_expiry: "HOLD" });
      await grant(connectClient(replica, tenant.apiKey), ORDER);
      await endLeases(database, tenant);
      return { replica };
    },
  },
  {
    job: "onceward-encryption",
    name: "an encryption key that is missing",
    hasLoad: true,
    alerts: ["OncewardRecordsUnreadable", ...BURNS],
    async begin({ database, defer, start }) {
      const first = await start(encryptionKeys(1));
      const { apiKey } = await createTenant(database);
      const { fencingToken } = await grant(connectClient(first, apiKey), ORDER);
      await connectClient(first, apiKey).complete({ ...ORDER, fencingToken, result: success("paid") });
      const replica = await start(encryptionKeys("none", 2));
      const client = connectClient(replica, apiKey);
      return { replica, happen: async () => defer(repeatCalls(1, () => client.claim(ORDER))) };
    },
  },
  {
    job: "onceward-certificate",
    name: "a certificate that expires in three days",
    alerts: ["OncewardCertificateExpires"],
    async begin({ defer, start }) {
      const certificate = await makeCertificate(3);
      defer(() => certificate.remove());
      return { replica: { ...(await start(tlsSettings(certificate))), isTls: true } };
    },
  },
  {
    job: "onceward-clock",
    name: "a machine whose clock is wrong",
    alerts: ["OncewardClockSkewed"],
    async begin({ database, defer }) {
      const wrong = "data:text/javascript,const now = Date.now; Date.now = () => now() + 7000";
      const replica = await startServerProcess(database.url, {}, ["--import", wrong, ...SERVER_PROGRAM]);
      defer(() => replica.end());
      return { replica };
    },
  },
  {
    job: "onceward-database-clock",
    name: "a database whose clock was set ahead",
    // The page about the database's clock inhibits the ticket about the machine's.
    alerts: ["OncewardClockSkewed", "OncewardDatabaseClockMoved"],
    async begin({ database, start }) {
      await useSettableClock(database);
      const replica = await start();
      return { replica, happen: () => setClockAhead(database, 10) };
    },
  },
  {
    job: "onceward-restored",
    name: "a database that was restored",
    alerts: ["OncewardDatabaseRestored"],
    async begin({ database, start }) {
      const replica = await start();
      // As a dump that was restored: no heartbeat raises the floor of a database that it was not stored in.
      const happen = () =>
        database.query(
          "update installation set token_floor = token_floor - 3600 * 1000000::bigint, made_in = 'elsewhere'",
        );
      return { replica, happen };
    },
  },
  {
    job: "onceward-locked",
    name: "a table that a person has locked",
    hasLoad: true,
    alerts: [
      ...BURNS,
      "OncewardClaimLatencyBurnFast",
      "OncewardClaimLatencyBurnSlow",
      "OncewardPoolSaturated",
    ],
    async begin({ database, defer, start }) {
      const replica = await start({ ONCEWARD_POOL_SIZE: "2" });
      const client = connectClient(replica, (await createTenant(database)).apiKey);
      return {
        replica,
        async happen() {
          await holdOpen(database, defer, "lock table records in access exclusive mode");
          defer(startClaims(client));
          defer(repeatCalls(1, () => client.lookup(ORDER)));
          defer(repeatCalls(1, () => client.release({ ...ORDER, fencingToken: 1n })));
        },
      };
    },
  },
];

/** Leaves a transaction open that has run a statement. */
async function holdOpen({ url }: TestDatabase, defer: Site["defer"], statement: string): Promise<void> {
  const connection = new pg.Client({ connectionString: url });
  await connection.connect();
  defer(() => connection.end());
  await connection.query("begin");
  await connection.query(statement);
}

describeWithPrograms(["prometheus"], "one Prometheus of many installations", () => {
  const ends = new AsyncDisposableStack();
  let rehearsal: Rehearsal;

  // All incidents happen at once: their alerts need time, and little else.
  beforeAll(async () => {
    rehearsal = await startRehearsal(SPEED);
    ends.defer(() => rehearsal.stop());
    for (const { job, begin } of INCIDENTS) {
      const database = await createTestDatabase();
      ends.defer(() => database.drop());
      const defer = (end: () => unknown) => ends.defer(async () => void (await end()));
      const start = async (env: Readonly<Record<string, string>> = {}) => {
        const server = await startTestServer(database.url, env, TUNING);
        defer(() => server.stop());
        return server;
      };
      const { replica, happen } = await begin({ database, defer, start });
      await rehearsal.scrape(job, [replica]);
      await happen?.();
    }
  }, START_TIMEOUT_MS);

  afterAll(() => ends.disposeAsync(), START_TIMEOUT_MS);

  test.each(INCIDENTS)("$name: $alerts", { timeout: START_TIMEOUT_MS }, async ({ job, alerts, hasLoad }) => {
    if (hasLoad) await rehearsal.untilAlerts(job, ...alerts);
    else await rehearsal.untilOnly(job, ...alerts);
  });
});
