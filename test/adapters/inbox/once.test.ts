import { expect, test, vi } from "vitest";
import { once } from "../../../clients/typescript/src/inbox.ts";
import { useCallerDatabase } from "./transactions.ts";

const { caller: database, db } = useCallerDatabase();
let keys = 0;

function newMessage() {
  keys++;
  return { consumer: "billing", key: `event-${keys}` };
}

/** Delivers a message: writes an effect in a new transaction, and returns its value. */
function deliver(message: Parameters<typeof once>[1], value = "invoice-1") {
  return db.transaction((tx) =>
    once(tx.executor, message, async () => {
      await tx.insertEffect(message.key, value);
      return value;
    }),
  );
}

async function inboxRows(key: string) {
  return await database.query("select consumer from onceward_inbox where key = $1 order by consumer", [key]);
}

test("of twenty concurrent deliveries one commits an effect, and all get its value", async () => {
  const message = newMessage();
  const deliveries = Array.from({ length: 20 }, (_, index) => deliver(message, `invoice-${index}`));
  const results = await Promise.all(deliveries);
  const effects = await database.effects(message.key);
  expect(effects).toHaveLength(1);
  expect(new Set(results.map(({ value }) => value))).toEqual(new Set([effects[0]?.value]));
  expect(results.filter(({ replayed }) => !replayed)).toHaveLength(1);
});

/** Resolves once this many statements wait for another transaction. */
async function untilWaiting(statements: number): Promise<void> {
  const waiting = () =>
    database.query(
      "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
    );
  await vi.waitUntil(async () => (await waiting()).length >= statements, { timeout: 30_000, interval: 5 });
}

test("a concurrent delivery waits for the first one's commit", async () => {
  const message = newMessage();
  const handled = Promise.withResolvers<void>();
  const first = db.transaction((tx) =>
    once(tx.executor, message, async () => {
      await tx.insertEffect(message.key, "by the first");
      await handled.promise;
      return "by the first";
    }),
  );
  await vi.waitFor(async () => expect(await openTransactionCount()).toBe(1), 30_000);
  const second = deliver(message, "by the second");
  await untilWaiting(1);
  handled.resolve();
  expect(await first).toEqual({ value: "by the first", replayed: false });
  expect(await second).toEqual({ value: "by the first", replayed: true });
});

test("a concurrent delivery runs when the first one rolls back", async () => {
  const message = newMessage();
  const handled = Promise.withResolvers<never>();
  const first = db.transaction((tx) => once(tx.executor, message, () => handled.promise));
  await vi.waitFor(async () => expect(await openTransactionCount()).toBe(1), 30_000);
  const second = deliver(message, "by the second");
  await untilWaiting(1);
  handled.reject(new Error("out of order"));
  await expect(first).rejects.toThrow("out of order");
  expect(await second).toEqual({ value: "by the second", replayed: false });
});

/** Returns the number of open transactions that have written. */
async function openTransactionCount(): Promise<number> {
  const rows = await database.query(
    "select from pg_stat_activity where datname = current_database() and backend_xid is not null",
  );
  return rows.length;
}

test("above READ COMMITTED, the later of two fails to serialise and may be repeated", async () => {
  const message = newMessage();
  const entering = db.transaction(async (tx) => {
    // The snapshot is taken by the first statement.
    await tx.executor("select", []);
    await deliver(message, "by the other");
    return await once(tx.executor, message, () => "again");
  }, "begin isolation level repeatable read");
  await expect(entering).rejects.toMatchObject({ code: "40001" });
  expect(await deliver(message)).toEqual({ value: "by the other", replayed: true });
});

test("a function's error is rethrown and undoes its writes, also if the caller commits", async () => {
  const message = newMessage();
  const thrown = new Error("out of stock");
  await db.transaction(async (tx) => {
    const handling = once(tx.executor, message, async () => {
      await tx.insertEffect(message.key, "undone");
      throw thrown;
    });
    await expect(handling).rejects.toBe(thrown);
    await tx.insertEffect(message.key, "dead letter");
  });
  expect(await database.effects(message.key)).toEqual([{ key: message.key, value: "dead letter" }]);
  expect(await deliver(message)).toMatchObject({ replayed: false });
});

test("at most once, a function's error undoes its writes, and the message is not handled again", async () => {
  const message = { ...newMessage(), mode: "at-most-once" } as const;
  const thrown = new Error("out of stock");
  await db.transaction(async (tx) => {
    const handling = once(tx.executor, message, async () => {
      await tx.insertEffect(message.key, "undone");
      throw thrown;
    });
    await expect(handling).rejects.toBe(thrown);
  });
  expect(await deliver(message)).toEqual({ value: undefined, replayed: true });
  expect(await database.effects(message.key)).toEqual([]);
  const other = { ...message, key: newMessage().key };
  for (const replayed of [false, true])
    expect(await deliver(other)).toEqual({ value: "invoice-1", replayed });
});

test("a statement that fails in the function undoes it alone", async () => {
  const message = newMessage();
  await db.transaction(async (tx) => {
    const handling = once(tx.executor, message, () => tx.executor("select 1 / 0", []));
    await expect(handling).rejects.toMatchObject({ code: "22012" });
    await tx.insertEffect(message.key, "dead letter");
  });
  expect(await database.effects(message.key)).toHaveLength(1);
  expect(await inboxRows(message.key)).toEqual([]);
});

test("each consumer handles a key once", async () => {
  const { key } = newMessage();
  for (const consumer of ["billing", "shipping"]) {
    expect(await deliver({ consumer, key }, consumer)).toEqual({ value: consumer, replayed: false });
  }
  expect(await inboxRows(key)).toEqual([{ consumer: "billing" }, { consumer: "shipping" }]);
});

test("keys are compared byte by byte", async () => {
  const { consumer, key } = newMessage();
  await deliver({ consumer, key: `${key}-\u00fc` });
  expect(await deliver({ consumer, key: `${key}-u\u0308` })).toMatchObject({ replayed: false });
});

test("a delivery without a fingerprint neither binds nor breaks a key", async () => {
  const bound = newMessage();
  await deliver({ ...bound, fingerprint: 1 });
  expect(await deliver(bound)).toMatchObject({ replayed: true });
  const unbound = newMessage();
  await deliver(unbound);
  expect(await deliver({ ...unbound, fingerprint: 1 })).toMatchObject({ replayed: true });
});

test.each([
  ["undefined stays undefined", undefined, undefined],
  ["null stays null", null, null],
  ["a Date becomes its ISO text", new Date(0), "1970-01-01T00:00:00.000Z"],
  ["no character is lost", "\0ü", "\0ü"],
  ["a large value stays whole", "x".repeat(2 ** 21), "x".repeat(2 ** 21)],
])("a repeat gets the first value: %s", async (_, value, stored) => {
  const message = newMessage();
  const handle = () => db.transaction((tx) => once<unknown>(tx.executor, message, () => value));
  expect(await handle()).toEqual({ value: stored, replayed: false });
  expect(await handle()).toEqual({ value: stored, replayed: true });
});

test("a value that is not JSON leaves nothing", async () => {
  const message = newMessage();
  const handling = db.transaction((tx) => once(tx.executor, message, () => 1n));
  await expect(handling).rejects.toMatchObject({ reason: "RESULT_NOT_JSON" });
  expect(await inboxRows(message.key)).toEqual([]);
});

test("one error names all violations, before anything is written", async () => {
  const tx = vi.fn();
  const refused = once(tx, { consumer: "", key: "a\0", mode: "once" as never }, () => "again");
  await expect(refused).rejects.toMatchObject({
    reason: "INVALID_REQUEST",
    violations: [{ field: "consumer" }, { field: "key" }, { field: "mode" }],
  });
  expect(tx).not.toHaveBeenCalled();
});
