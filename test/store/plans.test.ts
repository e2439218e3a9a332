import { beforeAll, expect, test } from "vitest";
import type { Pool } from "../../server/src/database/pool.ts";
import type { Deadline } from "../../server/src/domain/operation.ts";
import { findResolved } from "../../server/src/records/claim/find-resolved.ts";
import { UNLIMITED } from "../../server/src/records/engine/fair-queue.ts";
import { createRecordStore, type RecordStore } from "../../server/src/records/record-store.ts";
import { digestResult } from "../../server/src/records/result-digest.ts";
import { claimCommand } from "../support/calls/domain.ts";
import { usePool } from "../support/database/connections.ts";
import { useDatabase } from "../support/database/use-database.ts";

const ROWS = 100_000;
const ROWS_PER_INSERT = 5000;
const NO_DEADLINE: Deadline = { atMs: Number.POSITIVE_INFINITY, cancelled: false };

const database = useDatabase();
/** One connection, so that statements that operations prepared can be explained on it. */
const pool = usePool(database, 1);
/** The same pool; it records what runs on it. */
let recorded: Pool;
let store: RecordStore;
/** The parameters of each statement's latest run, by the statement's name. */
const ran = new Map<string, readonly unknown[]>();

beforeAll(async () => {
  recorded = {
    ...pool,
    run(statement, parameters, operations) {
      ran.set(statement.name, parameters);
      return pool.run(statement, parameters, operations);
    },
  };
  store = createRecordStore(recorded, UNLIMITED);
  await fillBehindThePlans();
});

/**
 * Plans every statement while the table is empty, as its statistics say, and then fills it, as in the busy hour
 * after a night in which all records ended. While an empty table has no page, reading all of it costs no more than
 * finding a key, so Postgres picks either: only because the pool discards old plans, no such plan is used later.
 */
async function fillBehindThePlans(): Promise<void> {
  await database.query("alter table records set (autovacuum_enabled = false)");
  await database.query("vacuum analyze records");
  for (const operate of Object.values(OPERATIONS)) await operate(0);
  // On the same connection, because an idle one would be closed, and its plans with it.
  for (let first = 1; first <= ROWS; first += ROWS_PER_INSERT) {
    await pool.run({ name: "fill", text: FILL }, [first, first + ROWS_PER_INSERT - 1]);
  }
}

const FILL = `
insert into records (tenant_id, namespace, key, fencing_token, state, attempt, holds_on_lease_expiry,
  accepts_ambiguous, lease_ms, key_retention_s, result_retention_s, failure_retention_s, first_claimed_at,
  claimed_at, lease_expires_at, expires_at, sweep_at, claim_id, owner)
select 1, 'charges', 'key-' || n, 1, 1, 1, false, false, 30000, 60, 60, 60, now(), now(),
       now() + interval '1 hour', now() + interval '1 hour', now() + n * interval '1 second', '', ''
  from generate_series($1::int, $2::int) n`;

function idOf(n: number) {
  return { tenantId: 1, namespace: "charges", key: `key-${n}` };
}

const result = { kind: "success", payload: Buffer.from("paid"), contentType: "", metadataJson: "" } as const;
const numbers = Array.from({ length: 200 }, (_, index) => (index + 1) * 17);

/** The operations that find records. */
const OPERATIONS: Readonly<Record<string, (n: number) => Promise<unknown>>> = {
  complete_records: (n) =>
    store.complete(
      [
        {
          id: idOf(n),
          fencingToken: 1n,
          result,
          resultDigest: digestResult(result),
          keyRetentionS: undefined,
        },
      ],
      NO_DEADLINE,
    ),
  release_records: (n) =>
    store.release([{ id: idOf(n), fencingToken: 2n, reason: "", giveBack: false }], NO_DEADLINE),
  extend_leases: (n) =>
    store.extendLease(
      [{ id: idOf(n), fencingToken: 2n, leaseMs: undefined, checkpoint: undefined, begin: false }],
      NO_DEADLINE,
    ),
  read_records: (n) => store.read([idOf(n)], NO_DEADLINE),
  find_resolved_records: (n) => findResolved({ pool: recorded }, [idOf(n)]),
};

interface Plan {
  readonly "Node Type": string;
  readonly "Index Name"?: string;
  readonly "Index Cond"?: string;
  readonly "Relation Name"?: string;
  readonly Plans?: readonly Plan[];
}

/** Returns the generic plan of a statement that the connection has prepared. */
async function planOf(statement: string): Promise<readonly Plan[]> {
  const literals = (ran.get(statement) ?? []).map(() => "null");
  const rows = await pool.run<{ "QUERY PLAN": [{ Plan: Plan }] }>(
    { name: "", text: `explain (format json) execute ${statement} (${literals.join(", ")})` },
    [],
  );
  return rows.flatMap((row) => nodesOf(row["QUERY PLAN"][0].Plan));
}

function nodesOf(plan: Plan): Plan[] {
  return [plan, ...(plan.Plans ?? []).flatMap(nodesOf)];
}

/**
 * Returns how a plan finds rows of `records`: each access with its index, and whether it searches for keys.
 */
function accessesIn(plan: readonly Plan[]): string[] {
  const scans = plan.filter((node) => node["Relation Name"] === "records" && /Scan/.test(node["Node Type"]));
  return scans.map((node) => {
    const condition = /key = /.test(node["Index Cond"] ?? "") ? "for keys" : "all of it";
    return `${node["Node Type"]} of ${node["Index Name"]} ${condition}`;
  });
}

test.each(Object.keys(OPERATIONS))(
  "%s finds its rows by the primary key, one after another",
  async (name) => {
    await Promise.all(numbers.map((n) => OPERATIONS[name]?.(n)));
    const plan = await planOf(name);
    expect(new Set(accessesIn(plan))).toEqual(new Set(["Index Scan of records_pkey for keys"]));
    expect(plan.map((node) => node["Node Type"])).not.toContain("Hash Join");
    expect(plan.map((node) => node["Node Type"])).not.toContain("Merge Join");
  },
);

test("claim_records reads no rows: only the constraint decides", async () => {
  await Promise.all(numbers.map((n) => store.claim([claimCommand({ id: idOf(n) })], NO_DEADLINE)));
  const plan = await planOf("claim_records");
  expect(plan.map((node) => node["Node Type"])).toContain("ModifyTable");
  expect(accessesIn(plan)).toEqual([]);
});

test("no statement is compiled, also if it has to read a whole table", async () => {
  const explain = { name: "", text: "explain (analyze, format json) select id from installation" };
  const [row] = await pool.run<{ "QUERY PLAN": [object] }>(explain, []);
  expect(row?.["QUERY PLAN"][0]).not.toHaveProperty("JIT");
});
