import { expect, test, vi } from "vitest";
import { createAddressShares, createTurnShares } from "./turn-shares.ts";

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

test("a party does as many pieces of work in a turn as its share has; the rest follows in order", async () => {
  const shares = createTurnShares<string>({ maxPerTurn: 2, maxMs: Number.POSITIVE_INFINITY });
  const done: string[] = [];
  for (const work of ["a1", "a2", "a3", "a4", "a5"]) shares.run("a", () => void done.push(work));
  shares.run("b", () => void done.push("b1"));
  expect(done).toEqual(["a1", "a2", "b1"]);
  await nextTurn();
  shares.run("a", () => void done.push("a6"));
  expect(done.slice(3)).toEqual(["a3", "a4"]);
  await nextTurn();
  await nextTurn();
  expect(done.slice(5)).toEqual(["a5", "a6"]);
});

test("work that is dropped takes no part of a turn, and what waits after it moves up", async () => {
  const shares = createTurnShares<string>({ maxPerTurn: 1, maxMs: Number.POSITIVE_INFINITY });
  const done: string[] = [];
  const run = (work: string) => shares.run("a", () => void done.push(work));
  expect(run("a1")).toBeUndefined();
  const drops = ["a2", "a3", "a4"].map(run);
  drops[0]?.();
  await nextTurn();
  expect(done).toEqual(["a1", "a3"]);
  drops[1]?.();
  drops[2]?.();
  await nextTurn();
  run("a5");
  expect(done).toEqual(["a1", "a3", "a5"]);
});

test("an address whose requests of a turn have taken 10 ms begins the next one in the next turn", async () => {
  let nowMs = 0;
  vi.spyOn(performance, "now").mockImplementation(() => nowMs);
  const shares = createAddressShares();
  let begun = 0;
  const begin = () => {
    begun++;
    nowMs += 4;
  };
  for (let request = 0; request < 7; request++) shares.run("10.0.0.1", begin);
  expect(begun).toBe(3);
  shares.run("10.0.0.2", begin);
  expect(begun).toBe(4);
  await nextTurn();
  expect(begun).toBe(7);
  await nextTurn();
  expect(begun).toBe(8);
});

test("work that throws in a later turn is not begun again, and what waits after it is", async () => {
  const shares = createTurnShares<string>({ maxPerTurn: 1, maxMs: Number.POSITIVE_INFINITY });
  const thrown: unknown[] = [];
  const uncaught = process.rawListeners("uncaughtException") as ((error: Error) => void)[];
  process.removeAllListeners("uncaughtException");
  process.on("uncaughtException", (error) => thrown.push(error.message));
  const done: string[] = [];
  shares.run("a", () => void done.push("a1"));
  shares.run("a", () => {
    done.push("a2");
    throw new Error("a2");
  });
  shares.run("a", () => void done.push("a3"));
  await expect.poll(() => done.at(-1)).toBe("a3");
  process.removeAllListeners("uncaughtException");
  for (const listener of uncaught) process.on("uncaughtException", listener);
  expect(done).toEqual(["a1", "a2", "a3"]);
  expect(thrown).toEqual(["a2"]);
});
