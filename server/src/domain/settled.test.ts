import { expect, test } from "vitest";
import { awaitLate, mapSettled, mapTogether, onlyValue, Rejected, type Settled } from "./settled.ts";

const broken = new Rejected(new Error("broken before"));

/** Halves even numbers. */
function half(value: number): number {
  if (value % 2 !== 0) throw new Error(`${value} is odd`);
  return value / 2;
}

test("each is worked on, and what fails or had failed fails alone", () => {
  expect(mapSettled([2, broken, 3, 4], half)).toEqual([1, broken, new Rejected(new Error("3 is odd")), 2]);
});

test("the values are worked on together, and what had failed keeps its place", async () => {
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

test("nothing is worked on where everything had failed", async () => {
  const work = () => Promise.reject(new Error("was asked"));
  expect(await mapTogether([broken, broken], work)).toEqual([broken, broken]);
});

test("those that take longer are waited for, and fail alone", async () => {
  const late = (value: number) => (value < 10 ? undefined : Promise.resolve().then(() => half(value)));
  expect(await awaitLate([1, 11, broken, 12], late)).toEqual([
    1,
    new Rejected(new Error("11 is odd")),
    broken,
    6,
  ]);
});

test("the only one is answered, or thrown", () => {
  expect(onlyValue([1])).toBe(1);
  expect(() => onlyValue([broken])).toThrow("broken before");
  expect(() => onlyValue([])).toThrow("0 settled");
  expect(() => onlyValue([1, 2])).toThrow("2 settled");
});
