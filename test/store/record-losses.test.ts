import { beforeEach, expect, test } from "vitest";
import type { InstallationWatch } from "../../server/src/background/installation-watch.ts";
import { raiseTokenFloor } from "../../server/src/database/installation.ts";
import type { Pool } from "../../server/src/database/pool.ts";
import { openStorePool } from "../support/database/connections.ts";
import { createDatabaseOfTest, type TestDatabase } from "../support/database/database.ts";
import { createWatch } from "../support/database/installation-watch.ts";

let database: TestDatabase;
let pool: Pool;

beforeEach(async () => {
  database = await createDatabaseOfTest();
  pool = openStorePool(database);
  await raiseTokenFloor(pool, 0);
  await moveFloor(-5);
});

const SECOND_US = 1_000_000;

/** Replaces the row by a backup from before the last `seconds` of the floor, with the loss that it knew of. */
async function restore(seconds: number, lostAt: string | null = null): Promise<void> {
  await database.query(
    `update installation set token_floor = token_floor - $1::bigint, records_lost_at = $2, made_in = 'elsewhere'`,
    [seconds * SECOND_US, lostAt],
  );
}

async function readLossMs(): Promise<number | undefined> {
  const [row] = await database.query<{ at: Date | null }>("select records_lost_at as at from installation");
  return row?.at?.getTime();
}

/** Changes the stored floor as a heartbeat does. */
async function moveFloor(seconds: number): Promise<void> {
  await database.query(
    `update installation
        set token_floor = token_floor + $1::bigint, made_in = database_identity(pg_current_xact_id()::xid)`,
    [seconds * SECOND_US],
  );
}

/** Returns a replica's watch that looked before the last `seconds` of the floor. */
async function watchOf(seconds: number) {
  const created = createWatch();
  await moveFloor(-seconds);
  await created.watch.look(pool);
  await moveFloor(seconds);
  return { ...created, look: () => created.watch.look(pool) };
}

type Watched = Awaited<ReturnType<typeof watchOf>>;

const ORDERS: readonly [
  string,
  (knows: Watched, knowsLess: Watched, starts: Watched) => readonly Watched[],
][] = [
  ["the replica that knows of it", (knows) => [knows]],
  ["one that looked before the backup, then it", (knows, knowsLess) => [knowsLess, knows]],
  ["one that starts, then it", (knows, _, starts) => [starts, knows]],
  ["all but it, then it", (knows, knowsLess, starts) => [starts, knowsLess, knows]],
];

test.each(ORDERS)(
  "a loss is stored, and every replica learns it, if the first to look is %s",
  async (_, order) => {
    const knowsLess = await watchOf(3);
    const knows = await watchOf(0);
    const { watch, ...rest } = createWatch();
    const starts = { watch, ...rest, look: () => watch.look(pool) };
    const startedAtMs = Date.now();
    await restore(2);
    const all = order(knows, knowsLess, starts);
    for (const { look } of all) expect(await look()).toBe(true);
    const lossMs = (await readLossMs()) ?? 0;
    expect(lossMs).toBeGreaterThanOrEqual(startedAtMs - 1000);
    for (const { look, recordLoss } of all) {
      await look();
      expect(Math.floor(recordLoss.lastAtMs ?? 0)).toBe(lossMs);
    }
    // Once: keys that were created after it are granted.
    expect(await readLossMs()).toBe(lossMs);
  },
);

test("a floor that is raised before the first check of a restored database hides no loss", async () => {
  const { look } = await watchOf(0);
  await restore(2);
  await raiseTokenFloor(pool, 0);
  expect(await look()).toBe(true);
  expect(await readLossMs()).toBeDefined();
});

test("a database that goes back by less than any replica has read has lost nothing", async () => {
  const [one, other] = [await watchOf(3), await watchOf(2)];
  await restore(1);
  for (const { look } of [one, other]) expect(await look()).toBe(true);
  expect(await readLossMs()).toBeUndefined();
  expect([one.recordLoss.lastAtMs, other.recordLoss.lastAtMs]).toEqual([0, 0]);
});

test("a new id of a database that no replica served shows a loss to one that has read more", async () => {
  const knows = await watchOf(0);
  await moveFloor(-60);
  await createWatch().watch.look(pool);
  expect(await readLossMs()).toBeUndefined();
  expect(await knows.look()).toBe(true);
  expect(await readLossMs()).toBeDefined();
});

test("a promotion without a loss is not logged as one", async () => {
  const { look, changes, errors } = await watchOf(0);
  await restore(0);
  await createWatch().watch.look(pool);
  expect(await look()).toBe(true);
  expect([changes.length, errors]).toEqual([1, []]);
});

/** Begins a check, and resolves once it has read the installation; it is answered later. */
async function lookLate(watch: InstallationWatch) {
  const read = Promise.withResolvers<void>();
  const { promise: answered, resolve: answer } = Promise.withResolvers<void>();
  const late = watch.look({
    ...pool,
    async run(statement, parameters) {
      const rows = await pool.run<never>(statement, parameters);
      read.resolve();
      await answered;
      return rows;
    },
  });
  await read.promise;
  return { late, answer };
}

const MARK = "update installation set records_lost_at = $1";
const LOST_AT = "2026-01-02 03:04:05+00";

test("a mark that a person corrects reaches running replicas", async () => {
  const { look, recordLoss } = await watchOf(0);
  await database.query(MARK, [new Date(Date.now() + 3_600_000)]);
  await look();
  expect(recordLoss.lastAtMs).toBeGreaterThan(Date.now());
  await database.query(MARK, [LOST_AT]);
  await look();
  expect(recordLoss.lastAtMs).toBe(Date.parse(LOST_AT));
  await database.query(MARK, [null]);
  await look();
  expect(recordLoss.lastAtMs).toBe(0);
});

test("a second restore, from a backup that does not know of the first loss, is a loss of its own", async () => {
  const { look, recordLoss } = await watchOf(0);
  const [{ floor } = { floor: "" }] = await database.query<{ floor: string }>(
    "select token_floor as floor from installation",
  );
  await database.query(MARK, [LOST_AT]);
  await look();
  expect(recordLoss.lastAtMs).toBe(Date.parse(LOST_AT));
  await restore(0);
  await database.query("update installation set token_floor = $1", [floor]);
  for (let looks = 0; looks < 2; looks++) {
    await look();
    expect(recordLoss.lastAtMs).toBeGreaterThan(Date.now() - 60_000);
  }
});

test("a backup from before a stored loss goes back for each replica that knows of the loss", async () => {
  const [knows, reads] = [await watchOf(0), await watchOf(3)];
  await restore(2);
  await reads.look();
  const [backup] = await database.query<{ token_floor: string; floor_found: string }>(
    "select token_floor, floor_found from installation",
  );
  await knows.look();
  await reads.look();
  await database.query(
    `update installation set token_floor = $1, floor_found = $2, records_lost_at = null,
            made_in = database_identity(pg_current_xact_id()::xid)`,
    [backup?.token_floor, backup?.floor_found],
  );
  await reads.look();
  expect(reads.recordLoss.lastAtMs).toBeGreaterThan(Date.now() - 60_000);
});

test("a check that is answered after the floor was raised and read again renews nothing", async () => {
  const { watch, changes } = createWatch();
  await watch.look(pool);
  const { late, answer } = await lookLate(watch);
  await moveFloor(1);
  await watch.look(pool);
  answer();
  expect([await late, changes]).toEqual([true, []]);
  expect(await database.query("select 1 from audit_events")).toEqual([]);
});

test("a check that is answered late does not take back a loss", async () => {
  const { watch, recordLoss } = createWatch();
  await watch.look(pool);
  const { late, answer } = await lookLate(watch);
  await database.query(MARK, [LOST_AT]);
  await watch.look(pool);
  answer();
  await late;
  expect(recordLoss.lastAtMs).toBe(Date.parse(LOST_AT));
});
