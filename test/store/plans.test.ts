import { afterAll, beforeAll, expect, test } from "vitest";
import type { ClaimCommand } from "../../server/src/domain/claim.ts";
import type { Deadline } from "../../server/src/domain/deadline.ts";
import { digestResult } from "../../server/src/domain/result-digest.ts";
import { openPool, type Pool } from "../../server/src/store/pool.ts";
import { findHeld } from "../../server/src/store/read-records.ts";
import { createRecordStore, type RecordStore } from "../../server/src/store/record-store.ts";
import { createTestDatabase, type TestDatabase } from "../helpers/database.ts";

const ROWS = 100_000;
const WHENEVER: Deadline = { atMs: Number.POSITIVE_INFINITY, cancelled: false };

let database: TestDatabase;
/** One connection, so that what an operation prepared can be explained on it. */
let pool: Pool;
let store: RecordStore;
/** The parameters of each statement's latest run, by its name. */
const ran = new Map<string, readonly unknown[]>();

beforeAll(async () => {
  database = await createTestDatabase();
  pool = openPool(
    { databaseUrl: database.url, size: 1, throughPgBouncer: false },
    { ran() {}, connectionLost() {} },
  );
  store = createRecordStore({
    ...pool,
    run(statement, parameters, operations) {
      ran.set(statement.name, parameters);
      return pool.run(statement, parameters, operations);
    },
  });
  await fillBehindTheStatistics();
});

afterAll(async () => {
  await pool?.close();
  await database?.drop();
});

/** As after a first busy hour: the statistics are of an empty table, and nothing has looked since. */
async function fillBehindTheStatistics(): Promise<void> {
  await database.query("alter table records set (autovacuum_enabled = false)");
  await database.query("analyze records");
  await database.query(
    `insert into records (tenant_id, namespace, key, fencing_token, state, attempt, holds_on_lease_expiry,
       accepts_ambiguous, lease_ms, key_retention_s, result_retention_s, failure_retention_s, first_claimed_at,
       claimed_at, lease_expires_at, expires_at, sweep_at, claim_id, owner)
     select 1, 'charges', 'key-' || n, 1, 1, 1, false, false, 30000, 60, 60, 60, now(), now(),
            now() + interval '1 hour', now() + interval '1 hour', now() + n * interval '1 second', '', ''
       from generate_series(1, $1::int) n`,
    [ROWS],
  );
}

function idOf(n: number) {
  return { tenantId: 1, namespace: "charges", key: `key-${n}` };
}

function claimCommand(n: number): ClaimCommand {
  return {
    id: idOf(n),
    fingerprint: undefined,
    claimId: "",
    owner: "",
    acceptAmbiguous: false,
    leaseMs: 30_000,
    onLeaseExpiry: "RECLAIM",
    keyRetentionS: 60,
    resultRetentionS: 60,
    failureRetentionS: 60,
  };
}

const result = { kind: "success", payload: Buffer.from("paid"), contentType: "", metadata: {} } as const;
const numbers = Array.from({ length: 200 }, (_, index) => (index + 1) * 17);

/** Each of the operations on records, 200 at a time. */
const OPERATIONS: Readonly<Record<string, (n: number) => Promise<unknown>>> = {
  claim_records: (n) => store.claim(claimCommand(n), WHENEVER),
  complete_records: (n) =>
    store.complete(
      {
        id: idOf(n),
        fencingToken: 1n,
        result,
        resultDigest: digestResult(result),
        keyRetentionS: undefined,
      },
      WHENEVER,
    ),
  release_records: (n) => store.release({ id: idOf(n), fencingToken: 2n, reason: "" }, WHENEVER),
  extend_leases: (n) =>
    store.extendLease({ id: idOf(n), fencingToken: 2n, leaseMs: undefined, checkpoint: undefined }, WHENEVER),
  read_records: (n) => store.read(idOf(n), WHENEVER),
};

interface Plan {
  readonly "Node Type": string;
  readonly "Index Name"?: string;
  readonly "Relation Name"?: string;
  readonly Plans?: readonly Plan[];
}

/** The plan of a statement that the connection has prepared, as it runs there. */
async function planOf(statement: string): Promise<readonly Plan[]> {
  const literals = (ran.get(statement) ?? []).map((value) => `'${String(value).replaceAll("'", "''")}'`);
  const rows = await pool.run<{ "QUERY PLAN": [{ Plan: Plan }] }>(
    { name: "", text: `explain (format json) execute ${statement} (${literals.join(", ")})` },
    [],
  );
  return rows.flatMap((row) => nodesOf(row["QUERY PLAN"][0].Plan));
}

function nodesOf(plan: Plan): Plan[] {
  return [plan, ...(plan.Plans ?? []).flatMap(nodesOf)];
}

/** How a plan finds rows of `records`. */
function accessesIn(plan: readonly Plan[]): string[] {
  const scans = plan.filter((node) => node["Relation Name"] === "records" && /Scan/.test(node["Node Type"]));
  return [...new Set(scans.map((node) => `${node["Node Type"]} by ${node["Index Name"]}`))];
}

test.each(Object.keys(OPERATIONS))(
  "%s finds its rows by the primary key, one after another",
  async (name) => {
    await Promise.all(numbers.map((n) => OPERATIONS[name]?.(n).catch(() => {})));
    const plan = await planOf(name);
    expect(accessesIn(plan)).toEqual(["Index Scan by records_pkey"]);
    expect(plan.map((node) => node["Node Type"])).not.toContain("Hash Join");
    expect(plan.map((node) => node["Node Type"])).not.toContain("Merge Join");
  },
);

test("looking for the keys that are waited for finds them by the primary key", async () => {
  const recorded: Pool = {
    ...pool,
    run(statement, parameters) {
      ran.set(statement.name, parameters);
      return pool.run(statement, parameters);
    },
  };
  const untouched = numbers.map((n) => idOf(n + 1));
  expect((await findHeld(recorded, untouched)).size).toBe(untouched.length);
  expect(accessesIn(await planOf("read_held_records"))).toEqual(["Index Scan by records_pkey"]);
});
