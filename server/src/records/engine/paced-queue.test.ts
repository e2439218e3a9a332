import { expect, test } from "vitest";
import type { Deadline } from "../../domain/operation.ts";
import { createPacedQueue } from "./paced-queue.ts";

const NO_DEADLINE: Deadline = { atMs: Number.POSITIVE_INFINITY, cancelled: false };
const PASSED: Deadline = { atMs: 0, cancelled: false };

/** Returns a queue whose tasks end when the test calls `end`. `started` lists the started tasks, in order. */
function setUp(width: number) {
  const queue = createPacedQueue({ width });
  const started: string[] = [];
  const ends = new Map<string, () => void>();
  const run = (lane: number, name: string, deadline = NO_DEADLINE) =>
    queue.run(lane, deadline, () => {
      started.push(name);
      return new Promise<string>((resolve) => ends.set(name, () => resolve(name)));
    });
  const end = async (name: string) => {
    await expect.poll(() => ends.has(name)).toBe(true);
    ends.get(name)?.();
  };
  return { queue, started, run, end };
}

test("a lane with many queued tasks alternates with other lanes", async () => {
  const { started, run, end } = setUp(1);
  const greedy = Array.from({ length: 50 }, (_, i) => run(1, `greedy ${i}`));
  const modest = [run(2, "modest 0"), run(2, "modest 1")];
  const order = ["greedy 0", "greedy 1", "modest 0", "greedy 2", "modest 1"];
  for (const name of order) await end(name);
  await Promise.all([...greedy.slice(0, 3), ...modest]);
  expect(started.slice(0, 5)).toEqual(order);
});

test("a lane has one running task, and other lanes use the remaining slots", async () => {
  const { started, run, end } = setUp(2);
  const greedy = [run(1, "greedy 0"), run(1, "greedy 1")];
  expect(started).toEqual(["greedy 0"]);
  const modest = run(2, "modest");
  expect(started).toEqual(["greedy 0", "modest"]);
  for (const name of ["modest", "greedy 0", "greedy 1"]) await end(name);
  expect(await Promise.all([...greedy, modest])).toEqual(["greedy 0", "greedy 1", "modest"]);
});

test("a task that fails rejects its caller's promise, and the next task starts", async () => {
  const { queue, run, end } = setUp(1);
  const failing = queue.run(1, NO_DEADLINE, () => Promise.reject(new Error("refused")));
  const next = run(1, "next");
  await expect(failing).rejects.toThrow("refused");
  await end("next");
  expect(await next).toBe("next");
});

test("a task whose deadline has passed when its turn comes is not started", async () => {
  const { started, run, end } = setUp(1);
  const first = run(1, "first");
  const late = run(1, "late", PASSED);
  await end("first");
  await first;
  await expect(late).rejects.toMatchObject({ reason: "DEADLINE_EXCEEDED" });
  expect(started).toEqual(["first"]);
});

test("a lane may queue half of the maximum, and another lane still has room", async () => {
  const { queue, run } = setUp(1);
  const outcomes = Array.from({ length: 3000 }, (_, i) =>
    run(1, `greedy ${i}`).catch((error) => error.reason),
  );
  expect(queue.waiting).toBe(1000);
  expect(await outcomes[2999]).toBe("OVERLOADED");
  void run(2, "modest");
  expect(queue.waiting).toBe(1001);
});
