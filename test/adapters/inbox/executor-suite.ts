import { inspect } from "node:util";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { completeIn, once, sweep } from "../../../clients/typescript/src/inbox.ts";
import type { CallerDatabase } from "./caller-database.ts";
import type { Transactions } from "./transactions.ts";

/**
 * Describes what the inbox does over the transactions of a library.
 *
 * @param open opens transactions of the library at a URL.
 */
export function describeExecutor(
  library: string,
  database: () => CallerDatabase,
  open: (url: string) => Transactions | Promise<Transactions>,
): void {
  describe(`over ${library}`, () => {
    let db: Transactions;

    beforeAll(async () => {
      db = await open(database().url);
    });

    afterAll(() => db?.[Symbol.asyncDispose]());

    const value = { id: "invoice-1", note: 'it\'s "quoted" $1 ü' };

    test("a repeat gets the value of the first delivery, and its fingerprint is compared", async () => {
      const message = { consumer: library, key: "event-1", fingerprint: { amount: 100 } };
      const deliver = (fingerprint: unknown) =>
        db.transaction((tx) =>
          once(tx.executor, { ...message, fingerprint }, async () => {
            await tx.insertEffect(`${library}/once`, "done");
            return value;
          }),
        );
      expect(await deliver({ amount: 100 })).toEqual({ value, replayed: false });
      expect(await deliver({ amount: 100 })).toEqual({ value, replayed: true });
      await expect(deliver({ amount: 200 })).rejects.toMatchObject({ reason: "FINGERPRINT_MISMATCH" });
      expect(await database().effects(`${library}/once`)).toHaveLength(1);
    });

    test("a rollback leaves nothing", async () => {
      const thrown = new Error("the caller has changed its mind");
      const handling = db.transaction(async (tx) => {
        await once(tx.executor, { consumer: library, key: "event-2" }, () =>
          tx.insertEffect(`${library}/undone`, "done"),
        );
        throw thrown;
      });
      await expect(handling).rejects.toBe(thrown);
      expect(await database().effects(`${library}/undone`)).toEqual([]);
      const again = db.transaction((tx) =>
        once(tx.executor, { consumer: library, key: "event-2" }, () => "again"),
      );
      expect(await again).toEqual({ value: "again", replayed: false });
    });

    test("outside a transaction nothing happens", async () => {
      const fn = vi.fn();
      const refused = once(db.pool, { consumer: library, key: "event-3" }, fn);
      // Each library has Postgres' code (no_active_sql_transaction) at a place of its own.
      const error = await refused.catch((thrown: unknown) => thrown);
      expect(inspect(error, { depth: 5 })).toContain("25P01");
      expect(fn).not.toHaveBeenCalled();
    });

    test("a completion commits with the effect, and a newer claim takes it over", async () => {
      const fn = vi.fn(() => value);
      for (const fencingToken of [2n ** 53n + 1n, 2n ** 53n + 2n]) {
        const claim = { namespace: "orders", key: library, fencingToken };
        expect(await db.transaction((tx) => completeIn(tx.executor, claim, fn))).toEqual(value);
      }
      expect(fn).toHaveBeenCalledOnce();
      const rows = await database().query("select fencing_token from onceward_completions where key = $1", [
        library,
      ]);
      expect(rows).toEqual([{ fencing_token: String(2n ** 53n + 2n) }]);
    });

    test("a sweep deletes old rows", async () => {
      await database().query(
        "update onceward_inbox set received_at = now() - interval '1 day' where consumer = $1",
        [library],
      );
      expect(await sweep(db.pool, { olderThanMs: 3_600_000 })).toEqual({ inbox: 2, completions: 0 });
    });
  });
}
