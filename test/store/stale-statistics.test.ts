import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { NO_KEYS, parseKeyring } from "../../server/src/core/config/keyring.ts";
import type { Deadline } from "../../server/src/core/domain/operation.ts";
import { digestResult } from "../../server/src/core/domain/result-digest.ts";
import { UNLIMITED } from "../../server/src/core/store/batching/fair-queue.ts";
import { readHighestToken, sampleNewestClaims } from "../../server/src/core/store/newest-tokens.ts";
import {
  countKeysUnderOtherPepper,
  findPepperMark,
  storeMark,
} from "../../server/src/core/store/pepper-check.ts";
import { openPool, type Pool } from "../../server/src/core/store/pool.ts";
import { pruneRows } from "../../server/src/core/store/prune.ts";
import { findResolved } from "../../server/src/core/store/records/read-records.ts";
import { createRecordStore } from "../../server/src/core/store/records/record-store.ts";
import { PLAIN_VALUES, type RecordValues } from "../../server/src/core/store/records/record-values.ts";
import { sweepBatch } from "../../server/src/core/store/records/sweep-records.ts";
import { BEFORE_ALL_REPLICAS, beatReplicaRow, findReplicas } from "../../server/src/core/store/replicas.ts";
import {
  ensureApiKey,
  findApiKeys,
  listApiKeys,
  revokeApiKeys,
  storeApiKeyUse,
  storeKeyDigest,
} from "../../server/src/core/store/tenants/api-keys.ts";
import { insertAuditEvents } from "../../server/src/core/store/tenants/audit-events.ts";
import { findLabelledTenants } from "../../server/src/core/store/tenants/labelled-tenants.ts";
import {
  addTotals,
  countRecordsPage,
  FROM_THE_START,
  storeCountedTotals,
  takeCount,
} from "../../server/src/core/store/tenants/tenant-totals.ts";
import {
  createFindTenants,
  ensureTenant,
  findTenantIds,
  findTenantResource,
  listTenantResources,
} from "../../server/src/core/store/tenants/tenants.ts";
import { countRecords } from "../../server/src/features/administration/store/count-records.ts";
import { findKey } from "../../server/src/features/administration/store/find-key.ts";
import { findAuditEvents } from "../../server/src/features/administration/store/list-audit-events.ts";
import { findNamespacesInUse } from "../../server/src/features/administration/store/list-namespaces-in-use.ts";
import {
  countNamespaces,
  listNamespaceResources,
} from "../../server/src/features/administration/store/namespaces.ts";
import {
  endSessions,
  findSessions,
  storeSession,
} from "../../server/src/features/console/store/console-sessions.ts";
import { readBacklog } from "../../server/src/features/doctor/facts/backlog.ts";
import { measureClockOffset } from "../../server/src/features/doctor/facts/clock.ts";
import { readConnectionLimits } from "../../server/src/features/doctor/facts/connections.ts";
import { readPrivileges } from "../../server/src/features/doctor/facts/privileges.ts";
import { readPostgresSettings } from "../../server/src/features/doctor/facts/settings.ts";
import { readStandbys } from "../../server/src/features/doctor/facts/standbys.ts";
import { readTableCounts } from "../../server/src/features/doctor/facts/tables.ts";
import {
  advanceEncryptionPass,
  beginEncryptionPass,
  takeEncryptionPage,
} from "../../server/src/features/encryption/encryption-pass.ts";
import { countKeyUsage } from "../../server/src/features/encryption/key-usage.ts";
import { createRecordEncryption } from "../../server/src/features/encryption/record-encryption.ts";
import { reencryptPage } from "../../server/src/features/encryption/reencrypt-records.ts";
import { readExamples } from "../../server/src/features/insight/store/key-examples.ts";
import {
  findObservedNamespaces,
  findPromptFingerprints,
  findReturnedKeys,
  readKeyObservations,
} from "../../server/src/features/insight/store/key-observations.ts";
import {
  addObservedKeys,
  limitKeySample,
  removeSampledKeys,
} from "../../server/src/features/insight/store/key-samples.ts";
import { readObservations } from "../../server/src/features/insight/store/observations.ts";
import {
  addTombstones,
  limitSample,
  listChangedSamples,
} from "../../server/src/features/insight/store/tombstones.ts";
import { createJobScheduler } from "../../server/src/features/jobs/scheduler.ts";
import { findTenantsThatHold } from "../../server/src/features/jobs/store/ambiguous-records.ts";
import { countMatching } from "../../server/src/features/jobs/store/count-matching.ts";
import { forgetPage, removePage } from "../../server/src/features/jobs/store/forget-records.ts";
import { findAmbiguous } from "../../server/src/features/jobs/store/list-ambiguous.ts";
import { findRecords } from "../../server/src/features/jobs/store/list-records.ts";
import {
  countUnfinishedJobsOf,
  countUnfinishedRecordJobs,
  listRecordJobs,
} from "../../server/src/features/jobs/store/record-jobs.ts";
import { removeTenantBatch } from "../../server/src/features/jobs/store/remove-tenant.ts";
import {
  MAX_EXAMINED_FOR_LIFE,
  mayHaveLiveRecords,
  nextNamespace,
  previewPage,
  restampPage,
} from "../../server/src/features/jobs/store/restamp-records.ts";
import { workBatch } from "../../server/src/features/jobs/work-batch.ts";
import {
  exportPlainRows,
  exportRecords,
  findMovingTenant,
} from "../../server/src/features/moving/store/export-tenant.ts";
import { countLateRepeats } from "../../server/src/features/usage/store/late-repeats.ts";
import { findTenantUse } from "../../server/src/features/usage/store/tenant-use.ts";
import { addUsage, readUsage } from "../../server/src/features/usage/store/usage.ts";
import { sumUsage } from "../../server/src/features/usage/store/usage-sums.ts";
import { USAGE_COUNTERS } from "../../server/src/features/usage/usage.ts";
import { claimCommand, DONE } from "../helpers/calls/domain.ts";
import { CROWDED_TENANT, crowdedKey, fillTables, LARGE_KEYS } from "../helpers/database/crowded-tables.ts";
import {
  createTestDatabase,
  isOtherPostgres,
  isPostgresBetween,
  type TestDatabase,
} from "../helpers/database/database.ts";
import { type Explained, explainingPool, rowsProcessed } from "../helpers/database/plans.ts";
import { encryptionKeys } from "../helpers/servers/encryption.ts";

/** Rows in the range of each statement. */
const ROWS = 20_000;
/** Rows in a page, a batch or a list. */
const BATCH_ROWS = 1000;

const NO_DEADLINE: Deadline = { atMs: Number.POSITIVE_INFINITY, cancelled: false };

/** Creates databases by the age of their statistics, from a filled database or from the empty template. */
const STATISTICS: Readonly<Record<string, (filled: string) => Promise<TestDatabase>>> = {
  "that were never gathered": (filled) => createTestDatabase(filled),
  async "of empty tables"() {
    const database = await createUnanalyzedDatabase();
    await database.query("vacuum analyze");
    await fillTables(database, ROWS);
    return database;
  },
  async "from before the rows were due"(filled) {
    const database = await createTestDatabase(filled);
    await database.query("update records set sweep_at = sweep_at + interval '1 day'");
    await database.query("vacuum analyze");
    await database.query("update records set sweep_at = sweep_at - interval '1 day'");
    return database;
  },
  // As after a vacuum in a quiet night in which nearly all records ended, when the pages are filled again.
  async "of tables that were nearly emptied"(filled) {
    const database = await createTestDatabase(filled);
    await database.query("vacuum analyze");
    await database.query("update pg_class set reltuples = 1 where relnamespace = 'public'::regnamespace");
    return database;
  },
};

/** Makes a database whose statistics only a test gathers. */
async function createUnanalyzedDatabase(): Promise<TestDatabase> {
  const database = await createTestDatabase();
  for (const { name } of await database.query<{ name: string }>(
    "select relname as name from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace",
  )) {
    await database.query(`alter table ${name} set (autovacuum_enabled = false)`);
  }
  return database;
}

/** Filled once, and copied for each kind of statistics. */
let filled: TestDatabase;

beforeAll(async () => {
  filled = await createUnanalyzedDatabase();
  await fillTables(filled, ROWS);
  // Postgres copies no database that has connections.
  await filled.close();
});

afterAll(() => filled?.drop());

function idOf(n: number) {
  return { tenantId: CROWDED_TENANT, namespace: "charges", key: crowdedKey(n) };
}

const BATCH = Array.from({ length: BATCH_ROWS }, (_, index) => index * 10 + 1);
const TENANTS = Array.from({ length: BATCH_ROWS }, (_, index) => index + 1);
/** Of the crowded tenant's tombstones. */
const CROWDED = { tenantId: CROWDED_TENANT, namespace: "charges" };

const tombstoneHash = (n: number) => createHash("md5").update(`${n}`).digest();
const KEY_IDS = TENANTS.map((n) => `key-${n}`);
const PAGE = { tenantId: CROWDED_TENANT, namespace: "charges", afterKey: crowdedKey(10), limit: BATCH_ROWS };
const RETENTION = { keyRetentionS: 60, resultRetentionS: 60, failureRetentionS: 60 };
const CHANGE = {
  was: RETENTION,
  becomes: { keyRetentionS: 600, resultRetentionS: 600, failureRetentionS: 600 },
};
const ENCRYPTION = createRecordEncryption(
  parseKeyring(encryptionKeys(1).ONCEWARD_ENCRYPTION_KEYS ?? "") ?? NO_KEYS,
  () => {},
);
const FILTER = {
  tenantId: CROWDED_TENANT,
  namespace: "charges",
  state: "ambiguous",
  keyPrefix: "key-1",
  key: "",
  claimedAfterMs: undefined,
  claimedBeforeMs: undefined,
  owner: "",
  fingerprint: undefined,
  leaseExpiredBeforeMs: undefined,
  checkpoint: "",
} as const;

/** The rows name keys that do not exist. */
const READS_ALL: RecordValues = { ...PLAIN_VALUES, openRow: (row) => row };

/** A position among the ambiguous records. */
const AMONG_AMBIGUOUS = { since: "2000-01-01 00:00:00+00", namespace: "", key: "" };

/** Of one of the 1,000 namespaces that each hour has. */
const USAGE_OF_NAMESPACE = {
  tenantId: CROWDED_TENANT,
  namespace: "namespace-7",
  afterMs: 0,
  beforeMs: undefined,
  behind: undefined,
  limit: BATCH_ROWS,
};

/** Two buckets of lateness. */
const ONE_IN_EACH = new Map([
  [0, 1],
  [7, 1],
]);

/**
 * Work on a batch of rows that are found by their keys: no statement processes as many rows as the table has.
 */
const BY_KEYS: Readonly<Record<string, (pool: Pool) => Promise<unknown>>> = {
  sweep: (pool) => sweepBatch(pool, BATCH_ROWS),
  complete: (pool) =>
    createRecordStore(pool, UNLIMITED).complete(
      BATCH.map((n) => ({
        id: idOf(n),
        fencingToken: 1n,
        result: DONE,
        resultDigest: digestResult(DONE),
        keyRetentionS: undefined,
      })),
      NO_DEADLINE,
    ),
  release: (pool) =>
    createRecordStore(pool, UNLIMITED).release(
      BATCH.map((n) => ({ id: idOf(n + 1), fencingToken: 1n, reason: "" })),
      NO_DEADLINE,
    ),
  "extend leases": (pool) =>
    createRecordStore(pool, UNLIMITED).extendLease(
      BATCH.map((n) => ({
        id: idOf(n + 2),
        fencingToken: 1n,
        leaseMs: undefined,
        checkpoint: undefined,
      })),
      NO_DEADLINE,
    ),
  "take over": (pool) =>
    createRecordStore(pool, UNLIMITED).claim(
      BATCH.map((n) => claimCommand({ id: idOf(n + 3) })),
      NO_DEADLINE,
    ),
  read: (pool) => createRecordStore(pool, UNLIMITED).read(BATCH.map(idOf), NO_DEADLINE),
  "read large payloads": (pool) => createRecordStore(pool, UNLIMITED).read(LARGE_KEYS.map(idOf), NO_DEADLINE),
  "encrypt a page": (pool) =>
    pool.transaction((transaction) =>
      reencryptPage(
        transaction,
        ENCRYPTION,
        { tenantId: CROWDED_TENANT, namespace: "charges", key: "" },
        BATCH_ROWS,
      ),
    ),
  "encrypt all records page by page": async (pool) => {
    await beginEncryptionPass(pool, 1);
    await pool.transaction(async (transaction) => {
      expect(await takeEncryptionPage(transaction, 1)).toMatchObject({ tenantId: 0 });
      await advanceEncryptionPass(transaction, ONE_PAGE, 0);
    });
  },
  "export records": (pool) => readAll(exportRecords(pool, CROWDED_TENANT, READS_ALL)),
  "export other rows": (pool) => readAll(exportPlainRows(pool, CROWDED_TENANT)),
  "list ambiguous records": (pool) => findAmbiguous(pool, FILTER, AMONG_AMBIGUOUS, BATCH_ROWS),
  "count ambiguous records": (pool) => countMatching(pool, FILTER, AMONG_AMBIGUOUS),
  "find resolved records": (pool) => findResolved({ pool }, BATCH.map(idOf)),
  "re-stamp a page": (pool) => restampPage(pool, PAGE, CHANGE),
  "preview a page": (pool) => previewPage(pool, PAGE, CHANGE),
  "forget a page": (pool) => forgetPage(pool, { ...PAGE, afterKey: crowdedKey(4) }, Date.now() + 60_000),
  "remove a page": (pool) => removePage(pool, { ...PAGE, afterKey: crowdedKey(5) }),
  "find namespaces": (pool) => nextNamespace(pool, CROWDED_TENANT, ""),
  "find a live record": (pool) => mayHaveLiveRecords(pool, CROWDED_TENANT, "charges"),
  "add usage": (pool) =>
    addUsage(
      pool,
      { replica: { id: crypto.randomUUID(), version: "1" }, seq: 1 },
      TENANTS.map((tenantId) => ({
        tenantId,
        namespace: "charges",
        counters: Object.fromEntries(USAGE_COUNTERS.map((name) => [name, 1])) as Record<
          (typeof USAGE_COUNTERS)[number],
          number
        >,
        retentions: [{ retentionS: 60, claims: 1, firstClaims: 1, repeats: ONE_IN_EACH, late: ONE_IN_EACH }],
      })),
    ),
  "read usage": (pool) =>
    readUsage(pool, {
      tenantId: CROWDED_TENANT,
      namespace: undefined,
      afterMs: 0,
      beforeMs: undefined,
      behind: undefined,
      limit: BATCH_ROWS,
    }),
  "sum usage": (pool) =>
    sumUsage(pool, {
      tenantId: CROWDED_TENANT,
      namespace: undefined,
      afterMs: 0,
      beforeMs: undefined,
      behindMs: 0,
      limit: 2,
    }),
  "read usage of a namespace": (pool) => readUsage(pool, USAGE_OF_NAMESPACE),
  "find a key": (pool) => findKey(pool, { tenantId: CROWDED_TENANT, key: crowdedKey(7) }, "", BATCH_ROWS),
  "add tombstones": (pool) =>
    addTombstones(
      pool,
      BATCH.map((n) => ({
        tenantId: CROWDED_TENANT,
        namespace: "charges",
        hash: tombstoneHash(n),
        depth: 3,
        shift: 0,
        firstClaimedAtMs: 0,
        endedAtMs: 1000,
        forgotten: n % 2 === 0,
      })),
    ),
  "add observed keys": (pool) =>
    addObservedKeys(
      pool,
      BATCH.map((n) => ({
        ...{ tenantId: CROWDED_TENANT, namespace: `namespace-${n}`, shift: 0 },
        shapes: {
          claims: 1,
          withoutFingerprint: 0,
          times: 0,
          attempts: 0,
          randomUuids: 0,
          promptUuids: 0,
        },
      })),
      BATCH.map((n) => ({
        ...{ tenantId: CROWDED_TENANT, namespace: `namespace-${n}`, depth: 3, claimedAtMs: 0 },
        ...{ fingerprintHash: tombstoneHash(n), keyHash: tombstoneHash(n), stemHash: undefined },
      })),
    ),
  "remove sampled keys": (pool) =>
    removeSampledKeys(
      pool,
      BATCH.map((n) => ({ ...CROWDED, keyHash: tombstoneHash(n) })),
    ),
  "count late repeats": (pool) =>
    countLateRepeats(
      pool,
      BATCH.map((n) => ({
        tenantId: CROWDED_TENANT,
        namespace: "charges",
        hash: tombstoneHash(n),
        depth: 3,
        atMs: Date.now(),
        retentionS: 60,
        shift: 0,
      })),
    ),
  "list changed samples": (pool) =>
    listChangedSamples(pool, { changedAtMs: 0, tenantId: 0, namespace: "" }, BATCH_ROWS),
  "add to totals": (pool) =>
    addTotals(
      pool,
      TENANTS.map((tenantId) => ({ tenantId, records: 1, storedBytes: 1 })),
    ),
  "store a count": (pool) =>
    storeCountedTotals(pool, { tenantId: CROWDED_TENANT, records: 1, storedBytes: 1 }, 1000),
  "count a page": (pool) => countRecordsPage(pool, CROWDED_TENANT, FROM_THE_START, BATCH_ROWS),
  "read tenants": (pool) => createFindTenants(pool)(TENANTS.slice(1)),
  "read tenants by name": (pool) =>
    findTenantIds(
      pool,
      TENANTS.map((id) => `tenant-${id}`),
    ),
  "read a tenant": (pool) => findTenantResource(pool, CROWDED_TENANT),
  "list tenants": (pool) => listTenantResources(pool, "", BATCH_ROWS),
  "load the policies of namespaces": async (pool) => {
    const tenant = (await createFindTenants(pool)([CROWDED_TENANT])).get(CROWDED_TENANT);
    await tenant?.namespaces.load(
      BATCH.slice(0, 200).map((n) => `namespace-${n}`),
      NO_DEADLINE,
    );
  },
  "list namespaces": (pool) => listNamespaceResources(pool, CROWDED_TENANT, "", BATCH_ROWS),
  "create a tenant with a key": async (pool) => {
    const tenantId = await ensureTenant(pool, "other");
    await ensureApiKey(pool, { ...KEY, tenantId });
  },
  "list API keys": (pool) => listApiKeys(pool, CROWDED_TENANT, undefined, BATCH_ROWS),
  "read sessions of the console": (pool) =>
    findSessions(
      pool,
      BATCH.map((n) => sessionDigest(n).toString("base64")),
    ),
  "start a session of the console": (pool) =>
    pool.transaction((transaction) =>
      storeSession(transaction, {
        digest: sessionDigest(0),
        tenantId: CROWDED_TENANT,
        credential: { kind: "API_KEY", actor: "key-7", keyDigest: sessionDigest(0) },
        expiresAtMs: undefined,
      }),
    ),
  "end sessions of the console": (pool) =>
    pool.transaction(async (transaction) => {
      await endSessions(transaction, sessionDigest(1), "this");
      await endSessions(transaction, sessionDigest(2), "all");
    }),
  "read API keys": (pool) => findApiKeys(pool, KEY_IDS),
  "list jobs": (pool) => listRecordJobs(pool, CROWDED_TENANT, undefined, BATCH_ROWS),
  "write audit events": (pool) =>
    insertAuditEvents(
      pool,
      TENANTS.map((id) => ({
        tenant: { id, name: `tenant-${id}` },
        actor: "key:1",
        action: "UpdateTenant",
        target: "",
        denial: undefined,
        reason: "",
        before: undefined,
        after: undefined,
        requestId: "",
        calls: 1,
      })),
    ),
  "read Postgres' settings, counts and limits": async (pool) => {
    await readPostgresSettings(pool);
    await readTableCounts(pool);
    await readConnectionLimits(pool);
    await readPrivileges(pool);
    await readStandbys(pool);
    await measureClockOffset(pool);
  },
  "store the use of keys": (pool) => storeApiKeyUse(pool, KEY_IDS),
  "store a key's digest": (pool) =>
    storeKeyDigest(pool, "key-1", Buffer.alloc(32), {
      digest: Buffer.alloc(32),
      pepperMark: Buffer.alloc(32),
    }),
  "compare peppers": async (pool) => {
    await findPepperMark(pool);
    await storeMark(pool, Buffer.alloc(32), undefined);
  },
  "store a heartbeat": (pool) =>
    beatReplicaRow(pool, {
      ...{ id: crypto.randomUUID(), version: "1", degraded: [], load: NO_LOAD },
      ...{ host: "replica-1", clockAheadMs: undefined, clockMovedMs: 0 },
    }),
};

const ENDED_RECORDS = `
  insert into records (tenant_id, namespace, key, fencing_token, state, attempt, holds_on_lease_expiry,
    accepts_ambiguous, lease_ms, key_retention_s, result_retention_s, failure_retention_s, first_claimed_at,
    claimed_at, lease_expires_at, expires_at, sweep_at, claim_id, owner)
  select tenant_id, 'ended', key, fencing_token, state, attempt, holds_on_lease_expiry,
    accepts_ambiguous, lease_ms, key_retention_s, result_retention_s, failure_retention_s, first_claimed_at,
    claimed_at, lease_expires_at, now() - interval '1 second', now() + interval '1 day', claim_id, owner
    from records where tenant_id = 1 and namespace = 'charges' limit $1`;

/** The whole installation, in one page. */
const ONE_PAGE = { examined: 1, changed: 1, skipped: 0, unreadable: 0, after: undefined };
const KEY = {
  id: "other",
  role: "CALLER",
  digest: Buffer.alloc(32),
  pepperMark: undefined,
  namespaces: undefined,
  label: "",
} as const;

const NO_LOAD = {
  callsInFlight: 0,
  operationsPerSecond: 0,
  connections: 0,
  poolSize: 0,
  poolBusy: 0,
  poolAwaited: 0,
};

/** Work on all rows of a range: a statement may process each row in a few nodes of its plan. */
const OVER_A_RANGE: Readonly<Record<string, (pool: Pool) => Promise<unknown>>> = {
  "find the highest token": readHighestToken,
  "count records by encryption key": countKeyUsage,
  "count keys under another pepper": (pool) => countKeysUnderOtherPepper(pool, Buffer.alloc(32)),
  "look at the newest claims": sampleNewestClaims,
  "read a tenant that moves": (pool) => findMovingTenant(pool, CROWDED_TENANT),
  "list replicas": (pool) => findReplicas(pool, BEFORE_ALL_REPLICAS, BATCH_ROWS),
  "find tenants that hold": (pool) => findTenantsThatHold(pool, TENANTS),
  "list labelled tenants": (pool) => findLabelledTenants(pool, BATCH_ROWS),
  "list records": (pool) => findRecords(pool, FILTER, { namespace: "charges", key: "" }, BATCH_ROWS),
  "count records": (pool) =>
    countRecords(pool, { tenantId: CROWDED_TENANT, namespace: "charges", afterKey: "" }),
  "list namespaces in use": (pool) => findNamespacesInUse(pool, CROWDED_TENANT, "", BATCH_ROWS),
  "read tenants' use": (pool) => findTenantUse(pool, [CROWDED_TENANT]),
  "list a tenant's audit events": (pool) => listEvents(pool, CROWDED_TENANT),
  "list audit events of a tenant's name": (pool) => listEvents(pool, "tenant-1"),
  "list all audit events": (pool) => listEvents(pool, undefined),
  "take a tenant to count": (pool) => takeCount(pool),
  "count a tenant's namespaces": (pool) => countNamespaces(pool, CROWDED_TENANT, BATCH_ROWS),
  "count a tenant's unfinished jobs": (pool) => countUnfinishedJobsOf(pool, CROWDED_TENANT),
  "prune audit events": (pool) => pruneRows(pool, "audit_events", 0, BATCH_ROWS),
  "prune usage": (pool) => pruneRows(pool, "usage_hours", 0, BATCH_ROWS),
  "limit a sample": (pool) => limitSample(pool, { tenantId: CROWDED_TENANT, namespace: "charges" }, ROWS / 2),
  "read observations": (pool) => readObservations(pool, CROWDED_TENANT, "charges"),
  "prune observed hours": (pool) => pruneRows(pool, "insight_hours", 0, BATCH_ROWS),
  "prune hours of late repeats": (pool) => pruneRows(pool, "insight_late_hours", 0, BATCH_ROWS),
  "prune tombstones": (pool) => pruneRows(pool, "insight_tombstones", 0, BATCH_ROWS),
  "limit a sample of keys": (pool) =>
    limitKeySample(pool, { tenantId: CROWDED_TENANT, namespace: "charges" }, ROWS / 2),
  "read observed keys": (pool) => readKeyObservations(pool, CROWDED_TENANT, "charges"),
  "list observed namespaces": (pool) => findObservedNamespaces(pool, CROWDED_TENANT, "", BATCH_ROWS),
  "find prompt fingerprints": (pool) =>
    findPromptFingerprints(pool, CROWDED, { isCounted: false, limit: BATCH_ROWS }),
  "find returned keys": (pool) => findReturnedKeys(pool, CROWDED, BATCH_ROWS),
  "read examples": (pool) => readExamples(pool, CROWDED, BATCH_ROWS),
  "prune shapes of keys": (pool) => pruneRows(pool, "insight_key_days", 0, BATCH_ROWS),
  "prune sampled keys": (pool) => pruneRows(pool, "insight_sampled_keys", 0, BATCH_ROWS),
  "prune sessions of the console": (pool) => pruneRows(pool, "console_sessions", -ROWS * 1000, BATCH_ROWS),
  "prune jobs": (pool) => pruneRows(pool, "record_jobs", 0, BATCH_ROWS),
  "remove a tenant's rows": (pool) =>
    pool.transaction((transaction) => removeTenantBatch(transaction, CROWDED_TENANT, 11 * ROWS)),
  "read overdue work": (pool) => readBacklog(pool),
  "count jobs": (pool) => countUnfinishedRecordJobs(pool),
  "work on a job": (pool) => workBatch(pool, createJobScheduler().next(0)),
  "revoke API keys": (pool) => pool.transaction((transaction) => revokeApiKeys(transaction, CROWDED_TENANT)),
};

function sessionDigest(n: number): Buffer {
  return createHash("sha256").update(String(n)).digest();
}

async function readAll(lines: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of lines);
}

function listEvents(pool: Pool, tenant: number | string | undefined) {
  const all = { afterMs: undefined, beforeMs: undefined, actor: "", target: "", denied: undefined };
  const filter = { ...all, tenant, action: "none such" };
  return findAuditEvents(pool, filter, undefined, BATCH_ROWS);
}

/** Statements on the one row of a primary key or a unique name, or on a table of one row. */
const ON_ONE_ROW = [
  ...["insert_api_key", "lock_api_key", "revoke_api_key"],
  ...["claim_record", "lock_record", "forget_record", "resolve_as_released", "resolve_as_completed"],
  ...["read_namespace", "put_namespace", "delete_namespace", "remove_tenant", "raise_cache_generation"],
  ...["insert_record_job", "read_record_job", "lock_record_job", "cancel_record_job"],
  ...["read_past_attempts", "remove_replica", "read_server_facts"],
  ...["read_backend"],
  ...["read_encryption_pass"],
  ...["look_at_installation", "mark_installation", "renew_installation"],
  ...["lock_tenant", "read_tenant_by_name", "lock_tenant_by_name", "lock_deleted_tenant"],
  ...["insert_tenant", "update_tenant", "remove_samples"],
];

/** Statements that sweep-limits.test.ts and sweep.test.ts cover. */
const ON_OTHER_ROWS = ["delete_ended_records"];

/** Statements that run only on Citus, for which Postgres' statistics say nothing: test/doctor/citus-findings.test.ts. */
const ON_CITUS = [
  ...["find_citus", "read_shards", "find_shards_of_keys", "check_node", "check_direct", "draw_tokens"],
  ...[
    "create_shard_guard",
    "distribute_shard_guard",
    "create_shard_runner",
    "distribute_shard_runner",
    "find_shard_functions",
  ],
  "read_citus_extension",
  "read_citus_nodes",
  "read_citus_distribution",
  "find_any_record",
  "check_citus_nodes",
  "command_citus_workers",
  "read_coordinator_clock",
  "distribute_records",
  "undistribute_records",
  "drop_shard_runner",
  "read_database_name",
];

const explainedAnywhere = new Set<string>();

/** On other Postgres than the packaged one, with what leads a planner astray most easily. */
const MISLEADING = ["of tables that were nearly emptied", "that were never gathered"];
const TESTED_STATISTICS = isOtherPostgres()
  ? MISLEADING.slice(0, isPostgresBetween() ? 1 : 2)
  : Object.keys(STATISTICS);

describe.each(TESTED_STATISTICS)("with statistics %s", (age) => {
  let database: TestDatabase;

  beforeAll(async () => {
    database = (await STATISTICS[age]?.(new URL(filled.url).pathname.slice(1))) as TestDatabase;
  });

  afterAll(async () => {
    await database?.drop();
  });

  async function explain(work: (pool: Pool) => Promise<unknown>): Promise<readonly Explained[]> {
    // One connection, so that nothing runs concurrently.
    const pool = openPool({ databaseUrl: database.url, size: 1, throughPgBouncer: false });
    onTestFinished(() => pool.close());
    const explained: Explained[] = [];
    await work(explainingPool(pool, explained));
    for (const { statement } of explained) explainedAnywhere.add(statement);
    expect(explained).not.toEqual([]);
    return explained;
  }

  /** Returns the statements that process more than `maxRows` rows. */
  function greedy(explained: readonly Explained[], maxRows: number) {
    return explained
      .map(({ statement, plan }) => ({ statement, rows: rowsProcessed(plan) }))
      .filter(({ rows }) => rows > maxRows);
  }

  test.each(Object.keys(BY_KEYS))("to %s reads no whole table", async (name) => {
    expect(greedy(await explain((pool) => BY_KEYS[name]?.(pool) as Promise<unknown>), ROWS)).toEqual([]);
  });

  test("a live record is sought among a bounded number of ended ones", async () => {
    await database.query(ENDED_RECORDS, [2 * MAX_EXAMINED_FOR_LIFE]);
    onTestFinished(async () => {
      await database.query("delete from records where namespace = 'ended'");
    });
    const explained = await explain(async (pool) => {
      expect(await mayHaveLiveRecords(pool, CROWDED_TENANT, "ended")).toBe(true);
      expect(await mayHaveLiveRecords(pool, CROWDED_TENANT, "none")).toBe(false);
    });
    // The rows of the index, of the limit and of the materialized list.
    expect(greedy(explained, 3 * MAX_EXAMINED_FOR_LIFE + 1)).toEqual([]);
  });

  test("ambiguous records are found in the order of their index", async () => {
    for (const name of ["list ambiguous records", "count ambiguous records"]) {
      const [explained] = await explain((pool) => BY_KEYS[name]?.(pool) as Promise<unknown>);
      const plan = explained?.plan ?? [];
      const reads = plan.flatMap((node, n) =>
        node["Relation Name"] === "records" ? [plan[n - 1], node] : [],
      );
      // Without a sort between them, the limit ends the scan.
      expect(reads).toMatchObject([
        { "Node Type": "Limit" },
        { "Node Type": "Index Scan", "Index Name": "records_ambiguous_from" },
      ]);
    }
  });

  test("to read usage of a namespace reads no row of the others", async () => {
    const explained = await explain((pool) => readUsage(pool, USAGE_OF_NAMESPACE));
    expect(greedy(explained, BATCH_ROWS)).toEqual([]);
  });

  test.each(Object.keys(OVER_A_RANGE))("to %s reads its range at most a few times", async (name) => {
    const explained = await explain((pool) => OVER_A_RANGE[name]?.(pool) as Promise<unknown>);
    expect(greedy(explained, 10 * ROWS)).toEqual([]);
  });
});

test("every statement of the store on more than one row is tested", async () => {
  const folder = new URL("../../server/src/", import.meta.url);
  const files = (await readdir(folder, { recursive: true })).filter((file) => /(?<!\.test)\.ts$/.test(file));
  const sources = await Promise.all(files.map((file) => readFile(new URL(file, folder), "utf8")));
  const names = sources.flatMap((source) => [...source.matchAll(/name: "(\w+)"/g)].map(([, name]) => name));
  const tested = new Set([...explainedAnywhere, ...ON_ONE_ROW, ...ON_OTHER_ROWS, ...ON_CITUS]);
  expect(names.length).toBeGreaterThan(50);
  expect(names.filter((name) => !tested.has(name ?? "") && name !== "onceward")).toEqual([]);
});
