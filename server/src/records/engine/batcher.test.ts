import { expect, test } from "vitest";
import { StatementFailed } from "../../database/statement-errors.ts";
import { type Deadline, Rejected } from "../../domain/operation.ts";
import { Refusal } from "../../domain/refusal.ts";
import { type BatcherOptions, StatementBatcher } from "./batcher.ts";
import { createTenantLimiter, UNLIMITED } from "./fair-queue.ts";

const NO_DEADLINE: Deadline = { atMs: Number.POSITIVE_INFINITY, cancelled: false };
const MAX_QUEUED_BY_TENANT = 20_000;
const MIB = 1024 * 1024;

interface Op {
  readonly name: string;
  readonly bytes?: number;
}

/** A statement that was sent. The test makes it succeed or fail. */
interface Sent {
  readonly names: readonly string[];
  succeed(): void;
  fail(error: unknown): void;
}

/**
 * Returns a batcher whose statements the test ends. A row names the operation and the index of its statement.
 */
function newBatcher(options: Partial<BatcherOptions<Op, string>> = {}) {
  const statements: Sent[] = [];
  const batcher = new StatementBatcher<Op, string>({
    nameOf: (op) => op.name,
    maxInFlight: 1,
    execute: (ops) =>
      new Promise((resolve, reject) => {
        const number = statements.length;
        statements.push({
          names: ops.map((op) => op.name),
          succeed: () => resolve(ops.map((op) => `${op.name} by ${number}`)),
          fail: reject,
        });
      }),
    ...options,
  });
  const submit = (name: string, deadline = NO_DEADLINE) => batcher.submit({ name }, deadline);
  return { batcher, submit, statements };
}

/** Waits for a turn of the event loop, in which everything that is ready is sent. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Makes every statement from index `from` on succeed, until no more is sent. */
async function succeedAll(statements: readonly Sent[], from = 0): Promise<void> {
  await turn();
  for (let i = from; i < statements.length; i++) {
    statements[i]?.succeed();
    await turn();
    await turn();
  }
}

test("a single operation is sent in the same turn of the event loop", async () => {
  const { submit, statements } = newBatcher();
  const single = submit("a");
  await turn();
  expect(statements.map(({ names }) => names)).toEqual([["a"]]);
  statements[0]?.succeed();
  expect(await single).toBe("a by 0");
});

test("operations that arrive together share a statement, in their order", async () => {
  const { submit, statements } = newBatcher();
  const all = Promise.all(["b", "a", "c"].map((name) => submit(name)));
  await succeedAll(statements);
  expect(statements.map(({ names }) => names)).toEqual([["b", "a", "c"]]);
  expect(await all).toEqual(["b by 0", "a by 0", "c by 0"]);
});

test("operations submitted together share statements with others, and each settles separately", async () => {
  const { batcher, submit, statements } = newBatcher({
    execute: (ops) =>
      ops.some((op) => op.name === "poison")
        ? Promise.reject(new StatementFailed("22P02", new Error("no")))
        : Promise.resolve(ops.map((op) => `${op.name} in ${ops.length}`)),
  });
  const together = batcher.submitAll([{ name: "a" }, { name: "poison" }, { name: "c" }], NO_DEADLINE);
  const single = submit("d");
  expect(await together).toEqual(["a in 1", new Rejected(expect.any(StatementFailed)), "c in 1"]);
  expect(await single).toBe("d in 1");
  expect(await batcher.submitAll([], NO_DEADLINE)).toEqual([]);
  expect(statements).toEqual([]);
});

test("submitAll resolves when its last operation has settled", async () => {
  const { batcher, statements } = newBatcher();
  let isResolved = false;
  const together = batcher.submitAll([{ name: "a" }, { name: "a" }], NO_DEADLINE).then((settled) => {
    isResolved = true;
    return settled;
  });
  await turn();
  statements[0]?.succeed();
  await turn();
  expect(isResolved).toBe(false);
  await succeedAll(statements, 1);
  expect(await together).toEqual(["a by 0", "a by 1"]);
});

test("operations that arrive while the maximum of statements runs share the next one", async () => {
  const { submit, statements } = newBatcher({ maxInFlight: 2 });
  const first = submit("a");
  await turn();
  const second = submit("b");
  await turn();
  const later = Promise.all(["c", "d"].map((name) => submit(name)));
  await turn();
  expect(statements.map(({ names }) => names)).toEqual([["a"], ["b"]]);
  await succeedAll(statements);
  expect(await Promise.all([first, second])).toEqual(["a by 0", "b by 1"]);
  expect(await later).toEqual(["c by 2", "d by 2"]);
});

test("operations of one name never share a statement: the second waits for the next", async () => {
  const { submit, statements } = newBatcher();
  const all = Promise.all(["a", "a", "b"].map((name) => submit(name)));
  await succeedAll(statements);
  expect(statements.map(({ names }) => names)).toEqual([["a", "b"], ["a"]]);
  expect(await all).toEqual(["a by 0", "a by 1", "b by 0"]);
});

test("with rowForDuplicate, duplicates get a row derived from the first operation's", async () => {
  const { submit, statements } = newBatcher({ rowForDuplicate: (row) => `${row}, shared` });
  const all = Promise.all(["a", "a", "b", "a"].map((name) => submit(name)));
  await succeedAll(statements);
  expect(statements.map(({ names }) => names)).toEqual([["a", "b"]]);
  expect(await all).toEqual(["a by 0", "a by 0, shared", "b by 0", "a by 0, shared"]);
});

test("an operation never gets a row of a statement that was sent before it arrived", async () => {
  const { submit, statements } = newBatcher({ rowForDuplicate: (row) => `${row}, shared` });
  const first = submit("a");
  await turn();
  const second = submit("a");
  await succeedAll(statements);
  expect(await Promise.all([first, second])).toEqual(["a by 0", "a by 1"]);
});

test("an operation whose deadline passed or whose caller cancelled is not sent", async () => {
  const { submit, statements } = newBatcher();
  const late = submit("late", { atMs: performance.now() - 1, cancelled: false });
  const gone = submit("gone", { ...NO_DEADLINE, cancelled: true });
  const waiting = submit("waiting");
  const refusals = await Promise.allSettled([late, gone]);
  expect(refusals).toMatchObject([
    { status: "rejected", reason: { reason: "DEADLINE_EXCEEDED" } },
    { status: "rejected", reason: { reason: "DEADLINE_EXCEEDED" } },
  ]);
  await succeedAll(statements);
  expect(await waiting).toBe("waiting by 0");
  expect(statements.map(({ names }) => names)).toEqual([["waiting"]]);
});

test("a full queue refuses operations, and accepts them again once it has room", async () => {
  const { submit, statements } = newBatcher();
  const sent = submit("sent");
  await turn();
  const queued = Array.from({ length: MAX_QUEUED_BY_TENANT }, (_, index) => submit(`queued-${index}`));
  await expect(submit("too many")).rejects.toMatchObject({
    reason: "OVERLOADED",
    retryAfterMs: expect.any(Number),
  });
  statements[0]?.succeed();
  await sent;
  await turn();
  await turn();
  const after = submit("after");
  await succeedAll(statements, 1);
  expect(await after).toMatch(/^after by/);
  expect(await Promise.all(queued)).toHaveLength(MAX_QUEUED_BY_TENANT);
  expect(Math.max(...statements.map(({ names }) => names.length))).toBe(256);
});

test("a statement accepts operations until it holds 4 MiB, and a single operation may be larger", async () => {
  const { batcher, statements } = newBatcher({ bytesOf: (op) => op.bytes ?? 0 });
  const sizes = [MIB, MIB, 3 * MIB, 5 * MIB, MIB];
  const all = sizes.map((bytes, index) => batcher.submit({ name: `${index}`, bytes }, NO_DEADLINE));
  await succeedAll(statements);
  await Promise.all(all);
  expect(statements.map(({ names }) => names)).toEqual([["0", "1", "2"], ["3"], ["4"]]);
});

test("the operations of a refused statement are retried one by one, and only the culprit fails", async () => {
  const poison = new StatementFailed("22P02", new Error("no"));
  const { submit } = newBatcher({
    execute: (ops) =>
      ops.some((op) => op.name === "poison")
        ? Promise.reject(poison)
        : Promise.resolve(ops.map((op) => `${op.name} in ${ops.length}`)),
  });
  const all = await Promise.allSettled(["a", "poison", "b"].map((name) => submit(name)));
  expect(all).toMatchObject([
    { value: "a in 1" },
    { status: "rejected", reason: poison },
    { value: "b in 1" },
  ]);
});

test("an operation whose deadline passes while its statement fails is not retried", async () => {
  const { submit, statements } = newBatcher({ rowForDuplicate: (row) => `${row}, shared` });
  const expiring = { atMs: Number.POSITIVE_INFINITY, cancelled: false };
  const all = Promise.allSettled([
    submit("a", expiring),
    submit("b", expiring),
    submit("b"),
    submit("b"),
    submit("c"),
  ]);
  await turn();
  expiring.cancelled = true;
  statements[0]?.fail(new StatementFailed("55P03", new Error("locked")));
  await succeedAll(statements, 1);
  expect(statements.map(({ names }) => names)).toEqual([["a", "b", "c"], ["b"], ["c"]]);
  expect(await all).toMatchObject([
    { reason: { reason: "DEADLINE_EXCEEDED" } },
    { reason: { reason: "DEADLINE_EXCEEDED" } },
    { value: "b by 1" },
    { value: "b by 1, shared" },
    { value: "c by 2" },
  ]);
});

test.each(["55P03", "40P01", "40001"])(
  "a lock conflict (%s) is refused with RECORD_CONTENDED and a retry delay",
  async (state) => {
    const { submit } = newBatcher({
      execute: () => Promise.reject(new StatementFailed(state, new Error("locked"))),
    });
    await expect(submit("a")).rejects.toMatchObject({
      reason: "RECORD_CONTENDED",
      retryAfterMs: expect.any(Number),
    });
  },
);

test("when the database is unavailable, all operations fail at once, and none is retried", async () => {
  const { submit, statements } = newBatcher();
  const all = ["a", "b"].map((name) => submit(name));
  await turn();
  statements[0]?.fail(new Refusal("DATABASE_UNAVAILABLE", "away"));
  expect(await Promise.allSettled(all)).toMatchObject([
    { reason: { reason: "DATABASE_UNAVAILABLE" } },
    { reason: { reason: "DATABASE_UNAVAILABLE" } },
  ]);
  expect(statements).toHaveLength(1);
});

/** Returns the names of a tenant's operations: `1-0`, `1-1` and so on. */
function opsOf(tenant: number, count: number): string[] {
  return Array.from({ length: count }, (_, i) => `${tenant}-${i}`);
}

const BY_TENANT = { tenantOf: (op: Op) => Number.parseInt(op.name, 10) };

test("with more operations queued than fit, each tenant has its share of the statement", async () => {
  const weightOf = (tenant: number) => (tenant === 3 ? 2 : 1);
  const { submit, statements } = newBatcher({ ...BY_TENANT, limiter: { ...UNLIMITED, weightOf } });
  const all = [...opsOf(1, 3000), ...opsOf(2, 200), ...opsOf(3, 1000)].map((name) => submit(name));
  await succeedAll(statements);
  await Promise.all(all);
  const takenNames = statements.map(({ names }) => names.map((name) => name[0]));
  const taken = (statement: number, tenant: string) =>
    takenNames[statement]?.filter((each) => each === tenant).length ?? 0;
  expect([taken(0, "1"), taken(0, "2"), taken(0, "3")]).toEqual([64, 64, 128]);
  // The second tenant has 8 operations left.
  expect(taken(3, "2")).toBe(8);
});

test("a tenant whose queue is full leaves room for another tenant", async () => {
  const { submit, statements } = newBatcher(BY_TENANT);
  const sent = submit("1-first");
  await turn();
  const greedy = Promise.allSettled(opsOf(1, 2 * MAX_QUEUED_BY_TENANT).map((name) => submit(name)));
  const modest = submit("2-only");
  await succeedAll(statements);
  await sent;
  expect(await modest).toBe("2-only by 1");
  expect((await greedy).filter(({ status }) => status === "rejected")).toHaveLength(MAX_QUEUED_BY_TENANT);
});

test("duplicates that are queued together share a row, however many operations lie between them", async () => {
  const { submit, statements } = newBatcher({
    ...BY_TENANT,
    rowForDuplicate: (row) => `${row}, shared`,
    maxInFlight: 2,
  });
  const all = ["1-0", ...opsOf(1, 600), "1-0"].map((name) => submit(name));
  await succeedAll(statements);
  expect((await Promise.all(all)).at(-1)).toBe("1-0 by 0, shared");
});

test("while another tenant is active, a tenant has at most its share in flight", async () => {
  const limiter = createTenantLimiter({ weightOf: () => 1, slotsPerTenant: 4 });
  const { submit, statements } = newBatcher({ ...BY_TENANT, limiter, maxInFlight: 3 });
  const modest = submit("2-0");
  const greedy = opsOf(1, 10).map((name) => submit(name));
  await turn();
  expect(statements.map(({ names }) => names)).toEqual([["2-0", ...opsOf(1, 4)]]);
  const again = submit("2-1");
  await turn();
  expect(statements[1]?.names).toEqual(["2-1"]);
  statements[0]?.succeed();
  await turn();
  await turn();
  expect(statements[2]?.names).toEqual(["1-4", "1-5", "1-6", "1-7"]);
  await succeedAll(statements, 1);
  expect(statements.map(({ names }) => names.length)).toEqual([5, 1, 4, 2]);
  expect(await Promise.all([modest, again])).toEqual(["2-0 by 0", "2-1 by 1"]);
  expect((await Promise.all(greedy)).at(-1)).toBe("1-9 by 3");
});

test.each([
  ["get their rows from one statement", (row: string) => `${row}, shared`, ["1-a by 0", "1-a by 0, shared"]],
  ["run one after another", undefined, ["1-a by 0", "1-a by 2"]],
])("operations of one call on one name %s, however slots come free", async (_, rowForDuplicate, rows) => {
  let slots = 1;
  const limiter = { ...UNLIMITED, maxInFlightOf: () => slots };
  const shared = rowForDuplicate === undefined ? {} : { rowForDuplicate };
  const { batcher, submit, statements } = newBatcher({ ...BY_TENANT, limiter, maxInFlight: 3, ...shared });
  const ordered = batcher.submitAll([{ name: "1-a" }, { name: "1-a" }], NO_DEADLINE);
  await turn();
  slots = 2;
  const other = submit("1-b");
  await turn();
  expect(statements.map(({ names }) => names)).toEqual([["1-a"], ["1-b"]]);
  await succeedAll(statements);
  expect(await ordered).toEqual(rows);
  expect(await other).toBe("1-b by 1");
});

test("a statement that fails releases its slots", async () => {
  const limiter = createTenantLimiter({ weightOf: () => 1, slotsPerTenant: 1 });
  const { submit, statements } = newBatcher({ ...BY_TENANT, limiter });
  const all = Promise.allSettled(["2-0", "1-0", "1-1"].map((name) => submit(name)));
  await turn();
  statements[0]?.fail(new Refusal("DATABASE_UNAVAILABLE", "away"));
  await turn();
  await succeedAll(statements, 1);
  expect((await all).map(({ status }) => status)).toEqual(["rejected", "rejected", "fulfilled"]);
});
