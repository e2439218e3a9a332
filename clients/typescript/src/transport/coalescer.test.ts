import { expect, test } from "vitest";
import type { BatchedRequest } from "../wire/request-size.ts";
import { Coalescer, type Pending } from "./coalescer.ts";

/** A server by hand: keeps the batches it gets, and answers one when told to. */
function recorder() {
  const batches: { readonly keys: readonly string[]; answer(): void }[] = [];
  const coalescer = new Coalescer<string>((batch) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    batches.push({
      keys: batch.map(keyOf),
      answer() {
        for (const pending of batch) pending.resolve(`answer to ${keyOf(pending)}`);
        resolve();
      },
    });
    return promise;
  });
  return { batches, coalescer };
}

function keyOf({ request }: Pending<string>): string {
  return request.value?.key ?? "";
}

function lookup(key: string): BatchedRequest {
  return { case: "lookup", value: { namespace: "charges", key } };
}

function complete(key: string, payloadBytes: number): BatchedRequest {
  const result = { payload: new Uint8Array(payloadBytes) };
  return { case: "complete", value: { namespace: "charges", key, result } };
}

/** The turn in which a flush happens, and one more. */
async function nextTurn(): Promise<void> {
  await turns(2);
}

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve));
}

test("the calls of one turn are one batch, in order, and each gets its own answer", async () => {
  const { batches, coalescer } = recorder();
  const calls = ["a", "b", "c"].map((key) => coalescer.enqueue(lookup(key)));
  await nextTurn();
  expect(batches.map(({ keys }) => keys)).toEqual([["a", "b", "c"]]);
  batches[0]?.answer();
  expect(await Promise.all(calls)).toEqual(["answer to a", "answer to b", "answer to c"]);
});

test("a single call is sent on the next turn", async () => {
  const { batches, coalescer } = recorder();
  void coalescer.enqueue(lookup("a"));
  await nextTurn();
  expect(batches).toHaveLength(1);
});

test("while four batches are in flight the rest is gathered into one", async () => {
  const { batches, coalescer } = recorder();
  for (const key of ["a", "b", "c", "d", "e", "f"]) {
    void coalescer.enqueue(lookup(key));
    await nextTurn();
  }
  expect(batches.map(({ keys }) => keys)).toEqual([["a"], ["b"], ["c"], ["d"]]);
  batches[0]?.answer();
  await nextTurn();
  expect(batches.at(-1)?.keys).toEqual(["e", "f"]);
});

test("many calls are divided among the batches that may be sent, one batch per turn", async () => {
  const { batches, coalescer } = recorder();
  for (let call = 0; call < 400; call++) void coalescer.enqueue(lookup(`${call}`));
  await turns(1);
  expect(batches.map(({ keys }) => keys.length)).toEqual([100]);
  await turns(4);
  expect(batches.map(({ keys }) => keys.length)).toEqual([100, 100, 100, 100]);
});

test("a few calls are not divided", async () => {
  const { batches, coalescer } = recorder();
  for (let call = 0; call < 63; call++) void coalescer.enqueue(lookup(`${call}`));
  await turns(3);
  expect(batches.map(({ keys }) => keys.length)).toEqual([63]);
});

test("a batch holds at most 1,000 calls", async () => {
  const { batches, coalescer } = recorder();
  for (let call = 0; call < 5000; call++) void coalescer.enqueue(lookup(`${call}`));
  await turns(6);
  expect(batches.map(({ keys }) => keys.length)).toEqual([1000, 1000, 1000, 1000]);
});

test("a batch stays below 4 MiB, and a larger call is sent alone", async () => {
  const { batches, coalescer } = recorder();
  const mebibyte = 1024 * 1024;
  for (const key of ["a", "b", "c", "d"]) void coalescer.enqueue(complete(key, mebibyte));
  void coalescer.enqueue(complete("huge", 5 * mebibyte));
  await turns(3);
  batches[0]?.answer();
  await turns(3);
  expect(batches.map(({ keys }) => keys)).toEqual([["a", "b", "c"], ["d"], ["huge"]]);
});

test("no more than two full batches are in flight", async () => {
  const { batches, coalescer } = recorder();
  for (let call = 0; call < 12; call++) void coalescer.enqueue(complete(`${call}`, 1024 * 1024));
  await turns(6);
  expect(batches.map(({ keys }) => keys.length)).toEqual([3, 3]);
  batches[0]?.answer();
  await turns(3);
  expect(batches.map(({ keys }) => keys.length)).toEqual([3, 3, 3]);
});

test("a closed coalescer refuses new calls and still answers earlier ones", async () => {
  const { batches, coalescer } = recorder();
  const before = coalescer.enqueue(lookup("a"));
  coalescer.close();
  await expect(coalescer.enqueue(lookup("b"))).rejects.toMatchObject({ reason: "CLOSED" });
  await nextTurn();
  batches[0]?.answer();
  expect(await before).toBe("answer to a");
});
