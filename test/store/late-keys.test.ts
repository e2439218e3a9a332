import { expect, test } from "vitest";
import type { Pool } from "../../server/src/database/pool.ts";
import { UNCHECKED_CLOCK } from "../../server/src/domain/database-clock.ts";
import { type Deadline, Rejected } from "../../server/src/domain/operation.ts";
import type { Refusal } from "../../server/src/domain/refusal.ts";
import {
  isTakenOver,
  type TakenOverRow,
  takeOverParameters,
  takeOverRecords,
} from "../../server/src/records/claim/claim-statements.ts";
import { UNLIMITED } from "../../server/src/records/engine/fair-queue.ts";
import type { ClaimCommand } from "../../server/src/records/record.ts";
import { createRecordStore } from "../../server/src/records/record-store.ts";
import { claimCommand } from "../support/calls/domain.ts";
import { usePool } from "../support/database/connections.ts";
import { useDatabase } from "../support/database/use-database.ts";

const NO_DEADLINE: Deadline = { atMs: Number.POSITIVE_INFINITY, cancelled: false };
const MINUTE_MS = 60_000;

const database = useDatabase();
const pool = usePool(database);

/** Returns a claim that may begin a new life until some time after the database's clock. */
async function claimUntil(key: string, afterMs: number): Promise<ClaimCommand> {
  const [row] = await database.query<{ now_ms: number }>("select date_part('epoch', now()) * 1000 as now_ms");
  const acceptedUntilMs = (row?.now_ms ?? Number.NaN) + afterMs;
  const id = { tenantId: 1, namespace: "charges", key };
  return claimCommand({ id, acceptedUntilMs, keyCreatedAtMs: acceptedUntilMs - MINUTE_MS });
}

async function takeOver(command: ClaimCommand): Promise<TakenOverRow[]> {
  return await pool.run<TakenOverRow>(takeOverRecords, takeOverParameters([command], 0, undefined));
}

/** Returns the reason for which a claim is refused, or the kind of its outcome. */
async function claim(command: ClaimCommand, databaseClock = UNCHECKED_CLOCK): Promise<string | undefined> {
  const store = createRecordStore(pool, UNLIMITED, { databaseClock });
  const [outcome] = await store.claim([command], NO_DEADLINE);
  return outcome instanceof Rejected ? (outcome.error as Refusal).reason : outcome?.kind;
}

function stateOf(key: string): Promise<unknown[]> {
  return database.query("select state from records where key = $1", [key]);
}

test("a take-over that takes over nothing returns the clock by which it decided", async () => {
  const command = await claimUntil("forgotten", MINUTE_MS);
  expect(await claim(command)).toBe("claimed");
  await database.query("update records set state = 0 where key = 'forgotten'");
  const [row, ...others] = await takeOver({ ...command, acceptedUntilMs: 1 });
  expect([row?.tenant_id, others]).toEqual([null, []]);
  expect(row?.now_ms).toBeGreaterThan((command.acceptedUntilMs ?? Number.NaN) - MINUTE_MS);
  expect(await stateOf("forgotten")).toEqual([{ state: 0 }]);
  expect((await takeOver(command)).map(({ tenant_id }) => tenant_id)).toEqual([1]);
});

test("a take-over of a too old key whose row was deleted after its read begins no life", async () => {
  const old = await claimUntil("deleted", -1);
  expect((await takeOver(old)).filter(isTakenOver).map(({ state }) => state)).toEqual([0]);
  expect(await stateOf("deleted")).toEqual([{ state: 0 }]);
  expect(await claim(old)).toBe("KEY_TOO_OLD");
  expect(await claim({ ...old, acceptedUntilMs: undefined })).toBe("claimed");
});

test("after a loss, a take-over of an older key whose row was swept begins no life", async () => {
  const command = await claimUntil("swept", MINUTE_MS);
  expect(await claim(command)).toBe("claimed");
  await database.query("update records set lease_expires_at = now() where key = 'swept'");
  const sweeping: Pool = {
    ...pool,
    async run(statement, parameters, operations) {
      if (statement.name === "take_over_records")
        await database.query("delete from records where key = 'swept'");
      return await pool.run(statement, parameters, operations);
    },
  };
  const recordLoss = { lastAtMs: command.keyCreatedAtMs };
  const [outcome] = await createRecordStore(sweeping, UNLIMITED, { recordLoss }).claim(
    [command],
    NO_DEADLINE,
  );
  expect(outcome).toBeInstanceOf(Rejected);
  expect(await stateOf("swept")).toEqual([{ state: 0 }]);
});

test("a claim that is too old when it is decided again is refused, and not contended", async () => {
  const command = await claimUntil("released", MINUTE_MS);
  expect(await claim(command)).toBe("claimed");
  await database.query("update records set state = 3, settled_at = now() where key = 'released'");
  // Between the read, which finds a released record, and the take-over, its retention ends.
  const ends: Pool = {
    ...pool,
    async run(statement, parameters, operations) {
      if (statement === takeOverRecords)
        await database.query("update records set expires_at = now() where key = 'released'");
      return await pool.run(statement, parameters, operations);
    },
  };
  const store = createRecordStore(ends, UNLIMITED);
  const [outcome] = await store.claim([{ ...command, acceptedUntilMs: 1 }], NO_DEADLINE);
  expect(outcome).toMatchObject({ error: { reason: "KEY_TOO_OLD" } });
});

test("a key that is too old only by a clock that was set forward may be claimed later", async () => {
  const old = await claimUntil("ahead", -1);
  const latestMs = (old.acceptedUntilMs ?? Number.NaN) - 1;
  const moved = { ...UNCHECKED_CLOCK, latestMs: () => latestMs };
  expect(await claim(old, moved)).toBe("DATABASE_UNAVAILABLE");
  expect(await claim(old, { ...moved, latestMs: () => latestMs + 1 })).toBe("KEY_TOO_OLD");
});
