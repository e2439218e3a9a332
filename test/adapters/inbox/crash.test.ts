import { createOnceward, type Onceward } from "@onceward/client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Record_State } from "../../../clients/typescript/src/gen/onceward/v1/record_pb.ts";
import { completeIn, deliverCompletions, once } from "../../../clients/typescript/src/inbox.ts";
import { endLeases, granted } from "../../support/calls/records.ts";
import { createTenant, type TestTenant } from "../../support/servers/tenants.ts";
import { useServer } from "../../support/servers/use-server.ts";
import { type Errand, runWorker } from "./crash.ts";
import { type Transaction, useCallerDatabase } from "./transactions.ts";

/** A test starts one worker process per step. */
const TIMEOUT_MS = 120_000;
/** More steps than any worker has. */
const MAX_STEPS = 20;

const { database: service, server } = useServer();
let tenant: TestTenant;
let onceward: Onceward;
const { caller, db } = useCallerDatabase();

beforeAll(async () => {
  tenant = await createTenant(service);
  onceward = createOnceward({ address: `http://127.0.0.1:${server.grpcPort}`, apiKey: tenant.apiKey });
});

afterAll(() => onceward?.close());

function work(errand: Errand["errand"], key: string, dieBefore: number) {
  return runWorker({
    errand,
    databaseUrl: caller.url,
    address: `http://127.0.0.1:${server.grpcPort}`,
    apiKey: tenant.apiKey,
    key,
    value: "by the worker",
    dieBefore,
  });
}

/** Kills one worker before each step in turn, until a worker reaches its end; returns that worker's steps. */
async function killBeforeEachStep(
  kill: (dieBefore: number) => Promise<Awaited<ReturnType<typeof runWorker>>>,
  first = 0,
): Promise<readonly string[]> {
  for (let dieBefore = first; dieBefore < MAX_STEPS; dieBefore++) {
    const { steps, died } = await kill(dieBefore);
    if (!died) return steps;
  }
  throw new Error(`a worker takes more than ${MAX_STEPS} steps`);
}

/** The handler of a redelivery, in this process. */
async function takeEffect(tx: Transaction, key: string): Promise<string> {
  await tx.insertEffect(key, "by the redelivery");
  return "by the redelivery";
}

test("once, killed before any step, has one effect after the redelivery, and its value", {
  timeout: TIMEOUT_MS,
}, async () => {
  const steps = await killBeforeEachStep(async (dieBefore) => {
    const key = `once-${dieBefore}`;
    const worker = await work("once", key, dieBefore);
    const committed = await caller.effects(key);
    const redelivered = await db.transaction((tx) =>
      once(tx.executor, { consumer: "billing", key }, () => takeEffect(tx, key)),
    );
    const effects = await caller.effects(key);
    expect(effects).toHaveLength(1);
    expect(redelivered).toEqual({ value: effects[0]?.value, replayed: committed.length === 1 });
    return worker;
  });
  expect(steps).toEqual([
    "begin",
    "savepoint onceward",
    "insert into onceward_inbox",
    "insert into effects",
    "update onceward_inbox set",
    "release savepoint onceward",
    "commit",
    "end",
  ]);
});

/** Delivers the message again to a living worker, after the lease of the dead one expired. */
async function redeliver(key: string): Promise<string> {
  await endLeases(service, tenant, key);
  return await onceward.run({ namespace: "orders", key }, (claim) =>
    db.transaction((tx) => completeIn(tx.executor, claim, () => takeEffect(tx, key))),
  );
}

async function isCompleted(key: string): Promise<boolean> {
  const { record } = await onceward.calls.lookup({ namespace: "orders", key });
  return record?.state === Record_State.COMPLETED;
}

async function pendingRows() {
  return await caller.query("select key, undeliverable from onceward_completions where delivered_at is null");
}

/** The steps of `run` without any effect yet. */
const UNTIL_COMMIT = [
  "call",
  "answer",
  "begin",
  "savepoint onceward",
  "insert into onceward_completions",
  "insert into effects",
  "update onceward_completions set",
  "release savepoint onceward",
];

test("run with completeIn, killed at any step: the relay delivers only committed completions", {
  timeout: TIMEOUT_MS,
}, async () => {
  const steps = await killBeforeEachStep(async (dieBefore) => {
    const key = `relayed-${dieBefore}`;
    const worker = await work("run", key, dieBefore);
    const committed = await caller.effects(key);
    await deliverCompletions({ onceward, database: db.pool });
    expect(await isCompleted(key)).toBe(committed.length === 1);
    const value = await redeliver(key);
    expect(await caller.effects(key)).toEqual([{ key, value }]);
    if (committed.length === 1) expect(value).toBe("by the worker");
    return worker;
  });
  expect(steps).toEqual([...UNTIL_COMMIT, "commit", "call", "answer", "end"]);
  await deliverCompletions({ onceward, database: db.pool });
  expect(await pendingRows()).toEqual([]);
});

test("run with completeIn, killed from its commit on, redelivered early: one effect, one value", {
  timeout: TIMEOUT_MS,
}, async () => {
  await killBeforeEachStep(async (dieBefore) => {
    const key = `redelivered-${dieBefore}`;
    const worker = await work("run", key, dieBefore);
    const value = await redeliver(key);
    expect(await caller.effects(key)).toEqual([{ key, value }]);
    await deliverCompletions({ onceward, database: db.pool });
    expect(await pendingRows()).toEqual([]);
    return worker;
  }, UNTIL_COMMIT.length);
});

test("a relay killed at any step: another one delivers, and one completion is kept", {
  timeout: TIMEOUT_MS,
}, async () => {
  const steps = await killBeforeEachStep(async (dieBefore) => {
    const key = `delivered-${dieBefore}`;
    const { fencingToken } = granted(await onceward.calls.claim({ namespace: "orders", key }));
    const claim = { namespace: "orders", key, fencingToken };
    await db.transaction((tx) => completeIn(tx.executor, claim, () => takeEffect(tx, key)));
    const worker = await work("deliver", key, dieBefore);
    await caller.query("update onceward_completions set next_attempt_at = now() where delivered_at is null");
    const counts = await deliverCompletions({ onceward, database: db.pool });
    const settled = worker.steps.includes("update onceward_completions c");
    expect(counts).toEqual({ delivered: settled ? 0 : 1, undeliverable: 0, failed: 0 });
    expect(await redeliver(key)).toBe("by the redelivery");
    expect(await caller.effects(key)).toHaveLength(1);
    return worker;
  });
  expect(steps).toEqual(["with due as", "call", "answer", "update onceward_completions c", "end"]);
});
