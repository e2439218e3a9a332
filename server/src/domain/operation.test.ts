import { expect, test } from "vitest";
import { mapSettled, mapTogether, onlyValue, Rejected, type Settled, settlePending } from "./operation.ts";

const broken = new Rejected(new Error("broken before"));

/** Halves even numbers. */
function half(value: number): number {
  if (value % 2 !== 0) throw new Error(`${value} is odd`);
  return value / 2;
}

test("mapSettled maps each value, and an error rejects only its operation", () => {
  expect(mapSettled([2, broken, 3, 4], half)).toEqual([1, broken, new Rejected(new Error("3 is odd")), 2]);
});

test("mapTogether maps all values by one call, and errors stay at their indexes", async () => {
  const seen: (readonly number[])[] = [];
  const work = async (values: readonly number[]): Promise<readonly Settled<number>[]> => {
    seen.push(values);
    return mapSettled(values, half);
  };
  expect(await mapTogether([2, broken, 3, 4], work)).toEqual([
    1,
    broken,
    new Rejected(new Error("3 is odd")),
    2,
  ]);
  expect(await mapTogether([6, 8], work)).toEqual([3, 4]);
  expect(seen).toEqual([
    [2, 3, 4],
    [6, 8],
  ]);
});

test("mapTogether maps nothing if all operations had failed", async () => {
  const work = () => Promise.reject(new Error("was called"));
  expect(await mapTogether([broken, broken], work)).toEqual([broken, broken]);
});

test("settlePending waits for promises, and an error rejects only its operation", async () => {
  const late = (value: number) => (value < 10 ? undefined : Promise.resolve().then(() => half(value)));
  expect(await settlePending([1, 11, broken, 12], late)).toEqual([
    1,
    new Rejected(new Error("11 is odd")),
    broken,
    6,
  ]);
});

test("onlyValue returns the value or throws the error of a single operation", () => {
  expect(onlyValue([1])).toBe(1);
  expect(() => onlyValue([broken])).toThrow("broken before");
  expect(() => onlyValue([])).toThrow("0 settled");
  expect(() => onlyValue([1, 2])).toThrow("2 settled");
});
