import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createTokenStock } from "./token-stock.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["performance"] }));
afterEach(() => void vi.useRealTimers());

/** A stock whose coordinator takes `answerMs` to draw from a sequence that begins with 1; `drawings` has their sizes. */
function newStock(answerMs = 0) {
  const drawings: number[] = [];
  let last = 0;
  const stock = createTokenStock({
    async run<Row>(_: unknown, [count]: readonly unknown[]): Promise<Row[]> {
      drawings.push(Number(count));
      vi.advanceTimersByTime(answerMs);
      return Array.from({ length: Number(count) }, () => ({ token: String(++last) }) as Row);
    },
  });
  return { drawings, ...stock };
}

test("statements that insert rows share a drawing of 256 numbers, each of which is used once", async () => {
  const { drawings, forNewRows } = newStock();
  const numbers = await Promise.all(Array.from({ length: 257 }, forNewRows));
  expect(drawings).toEqual([256, 256]);
  expect(new Set(numbers).size).toBe(257);
});

test("a number that was drawn a second ago is not used any more", async () => {
  const { drawings, forNewRows } = newStock();
  expect(await forNewRows()).toBe(1n);
  vi.advanceTimersByTime(999);
  expect(await forNewRows()).toBe(2n);
  vi.advanceTimersByTime(1);
  expect(await forNewRows()).toBe(257n);
  expect(drawings).toEqual([256, 256]);
});

test("a number is used although the coordinator took long to draw it", async () => {
  const { drawings, forNewRows } = newStock(3000);
  expect(await forNewRows()).toBe(1n);
  expect(drawings).toEqual([256]);
});

test("a statement that changes rows draws a number of its own", async () => {
  const { drawings, forNewRows, forExistingRows } = newStock();
  expect([await forNewRows(), await forExistingRows(), await forExistingRows()]).toEqual([1n, 257n, 258n]);
  expect(drawings).toEqual([256, 1, 1]);
});
