import type { Transport } from "@connectrpc/connect";
import { expect, onTestFinished, test, vi } from "vitest";
import { newTesting } from "../../../../test/support/calls/testing.ts";
import { createAgentRun } from "../agents.ts";
import type { TestingOnceward } from "../testing.ts";
import { createOnceward, type Onceward } from "./onceward.ts";

const LEASE_MS = 30_000;
const operation = { namespace: "charges", key: "order-1", leaseMs: LEASE_MS };

const monotonicNow = performance.now.bind(performance);
const wallNow = Date.now;
/** How far a test has moved the clocks of this process. */
const moved = { monotonicMs: 0, wallMs: 0 };
vi.spyOn(performance, "now").mockImplementation(() => monotonicNow() + moved.monotonicMs);
vi.spyOn(Date, "now").mockImplementation(() => wallNow() + moved.wallMs);

/** What stops in a process while others continue. */
type Pause = "a stalled event loop" | "a suspended machine";

/** Lets time pass at the service, and for this process as the pause shows it. */
function pass(testing: TestingOnceward, pause: Pause, ms: number): void {
  testing.clock.advance(ms);
  moved.wallMs += ms;
  if (pause === "a stalled event loop") moved.monotonicMs += ms;
}

interface World {
  readonly testing: TestingOnceward;
  readonly onceward: Onceward;
  /** Called with each call's number, from 1, once the service has answered it, and before the client sees the answer. */
  readonly onAnswer: ReturnType<typeof vi.fn<(call: number) => unknown>>;
}

function newWorld(): World {
  const testing = newTesting();
  const onAnswer = vi.fn<(call: number) => unknown>();
  let calls = 0;
  const transport: Transport = {
    stream: testing.transport.stream,
    async unary(...call) {
      const number = ++calls;
      const answer = await testing.transport.unary(...call);
      await onAnswer(number);
      return answer;
    },
  };
  const onceward = createOnceward({ transport, owner: "worker-1" });
  onTestFinished(() => onceward.close({ timeoutMs: 0 }));
  return { testing, onceward, onAnswer };
}

const pauses = ["a stalled event loop", "a suspended machine"] as const;

test.each(pauses)("after %s, a claim that another holder took over does not run", async (pause) => {
  const { testing, onceward, onAnswer } = newWorld();
  onAnswer.mockImplementationOnce(async () => {
    pass(testing, pause, LEASE_MS);
    await testing.onceward.run(operation, () => "by worker-2");
  });
  const fn = vi.fn();
  expect(await onceward.run(operation, fn)).toBe("by worker-2");
  expect(fn).not.toHaveBeenCalled();
});

test.each(pauses)("after %s, a checkpoint that another holder has superseded is not saved", async (pause) => {
  const { testing, onceward, onAnswer } = newWorld();
  const steps: string[] = [];
  const run = onceward.run(operation, async (claim) => {
    onAnswer.mockImplementationOnce(async () => {
      pass(testing, pause, LEASE_MS);
      await testing.onceward.run(operation, () => steps.push("by worker-2"));
    });
    await claim.saveCheckpoint("charging");
    steps.push("by worker-1");
  });
  await expect(run).rejects.toMatchObject({ reason: expect.stringMatching(/^(ALREADY|CLAIM)_/) });
  expect(steps).toEqual(["by worker-2"]);
});

test("after a stall, a tool of an agent that another process has run does not begin", async () => {
  const { testing, onceward, onAnswer } = newWorld();
  const tools: string[] = [];
  const call = { tool: "charge", step: "1", input: { cents: 100 } };
  const agentOf = (client: Onceward) =>
    createAgentRun(client, { namespace: "tools", runId: "run-1", leaseMs: LEASE_MS });
  // The answer to the claim, and that to the mark after which the tool begins.
  onAnswer
    .mockImplementationOnce(() => {})
    .mockImplementationOnce(async () => {
      const [record] = testing.records();
      pass(testing, "a stalled event loop", LEASE_MS);
      await testing.onceward.calls
        .claim({ namespace: "tools", key: record?.key ?? "", claimId: "worker-2", owner: "worker-2" })
        .then(() => tools.push("by worker-2"));
    });
  await expect(agentOf(onceward).call(call, () => tools.push("by worker-1"))).rejects.toMatchObject({
    reason: "IN_PROGRESS",
  });
  expect(tools).toEqual(["by worker-2"]);
});

test("a machine that was suspended while a function runs has lost the lease within a second", async () => {
  const { testing, onceward } = newWorld();
  const lost = Promise.withResolvers<unknown>();
  const run = onceward.run(operation, async ({ signal }) => {
    signal.addEventListener("abort", () => lost.resolve(signal.reason));
    pass(testing, "a suspended machine", LEASE_MS);
    expect(await lost.promise).toMatchObject({ reason: "LEASE_LOST" });
  });
  await run;
});

test("a wall clock that is set back changes nothing", async () => {
  const { onceward, onAnswer } = newWorld();
  onAnswer.mockImplementationOnce(() => {
    moved.wallMs -= LEASE_MS;
  });
  expect(await onceward.run(operation, ({ signal }) => signal.aborted)).toBe(false);
  expect(onAnswer).toHaveBeenCalledTimes(2);
});
