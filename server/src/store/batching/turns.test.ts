import { expect, test } from "vitest";
import type { Deadline } from "../../domain/deadline.ts";
import { createTurns } from "./turns.ts";

const WHENEVER: Deadline = { atMs: Number.POSITIVE_INFINITY, cancelled: false };
const PASSED: Deadline = { atMs: 0, cancelled: false };

/** Turns, and work that ends when the test says so; `begun` lists what was begun, in order. */
function setUp(width: number) {
  const turns = createTurns({ width });
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  const take = (lane: number, name: string, deadline = WHENEVER) =>
    turns.take(lane, deadline, () => {
      begun.push(name);
      return new Promise<string>((resolve) => ends.set(name, () => resolve(name)));
    });
  const end = async (name: string) => {
    await expect.poll(() => ends.has(name)).toBe(true);
    ends.get(name)?.();
  };
  return { turns, begun, take, end };
}

test("a lane with much work waiting has its turns between those of others", async () => {
  const { begun, take, end } = setUp(1);
  const greedy = Array.from({ length: 50 }, (_, i) => take(1, `greedy ${i}`));
  const modest = [take(2, "modest 0"), take(2, "modest 1")];
  const order = ["greedy 0", "greedy 1", "modest 0", "greedy 2", "modest 1"];
  for (const name of order) await end(name);
  await Promise.all([...greedy.slice(0, 3), ...modest]);
  expect(begun.slice(0, 5)).toEqual(order);
});

test("a lane has one piece of work under way, and others have the rest of the places", async () => {
  const { begun, take, end } = setUp(2);
  const greedy = [take(1, "greedy 0"), take(1, "greedy 1")];
  expect(begun).toEqual(["greedy 0"]);
  const modest = take(2, "modest");
  expect(begun).toEqual(["greedy 0", "modest"]);
  for (const name of ["modest", "greedy 0", "greedy 1"]) await end(name);
  expect(await Promise.all([...greedy, modest])).toEqual(["greedy 0", "greedy 1", "modest"]);
});

test("work that fails tells its caller, and the next one begins", async () => {
  const { turns, take, end } = setUp(1);
  const failing = turns.take(1, WHENEVER, () => Promise.reject(new Error("refused")));
  const next = take(1, "next");
  await expect(failing).rejects.toThrow("refused");
  await end("next");
  expect(await next).toBe("next");
});

test("work whose deadline has passed when its turn comes is not begun", async () => {
  const { begun, take, end } = setUp(1);
  const first = take(1, "first");
  const late = take(1, "late", PASSED);
  await end("first");
  await first;
  await expect(late).rejects.toMatchObject({ reason: "DEADLINE_EXCEEDED" });
  expect(begun).toEqual(["first"]);
});

test("a lane may have half of what waits; another still has room", async () => {
  const { turns, take } = setUp(1);
  const outcomes = Array.from({ length: 3000 }, (_, i) =>
    take(1, `greedy ${i}`).catch((error) => error.reason),
  );
  expect(turns.waiting).toBe(1000);
  expect(await outcomes[2999]).toBe("OVERLOADED");
  void take(2, "modest");
  expect(turns.waiting).toBe(1001);
});
