import { expect, test, vi } from "vitest";
import { granted } from "../../../../test/support/calls/records.ts";
import { newTesting } from "../../../../test/support/calls/testing.ts";
import {
  type AgentRunOptions,
  aiSdkTools,
  createAgentRun,
  didNotHappen,
  happened,
  langChainTools,
  NoEffectError,
  OutcomeUnknownError,
  type ToolCall,
} from "../agents.ts";
import { type Claim, createOnceward, newKey, TerminalError } from "../index.ts";
import type { TestingOnceward } from "../testing.ts";

const refund: ToolCall = { tool: "refund", step: 1, input: { order: "7", cents: 500 } };
const other: ToolCall = { ...refund, input: { order: "8", cents: 900 } };

function underPolicy(onLeaseExpiry: "HOLD" | "RECLAIM"): TestingOnceward {
  return newTesting({ policy: { onLeaseExpiry } });
}

/** Returns the run as a new process resumes it. */
function resume({ onceward }: TestingOnceward, options: Partial<AgentRunOptions> = {}) {
  return createAgentRun(onceward, { namespace: "agent-tools", runId: "run-1", waitMs: 0, ...options });
}

/** Makes the call in a process that dies while the tool runs, and lets the lease expire. */
async function crash(testing: TestingOnceward, call: ToolCall): Promise<void> {
  const process = createOnceward({ transport: testing.transport, owner: "dying" } as never);
  const begun = Promise.withResolvers<void>();
  const run = createAgentRun(process, { namespace: "agent-tools", runId: "run-1" });
  void run
    .call(call, () => {
      begun.resolve();
      return new Promise(() => {});
    })
    .catch(() => {});
  await begun.promise;
  await process.close({ timeoutMs: 0 });
  testing.clock.advance(30_000);
}

test("a repeated step gets the stored values, in any order of its calls, and with other call ids", async () => {
  const testing = newTesting();
  const tool = vi.fn(() => ({ receipt: tool.mock.calls.length }));
  const attempt = async (calls: readonly ToolCall[]) => {
    const run = resume(testing);
    const response = {};
    return await Promise.all(
      calls.map((call) => run.call({ ...call, callId: crypto.randomUUID(), response }, tool)),
    );
  };
  // Two equal calls of one response are two operations.
  const [first, second, third] = await attempt([refund, other, refund]);
  expect([first, second, third]).toEqual([{ receipt: 1 }, { receipt: 2 }, { receipt: 3 }]);
  expect(await attempt([refund, refund, other])).toEqual([first, third, second]);
  expect(await attempt([other])).toEqual([second]);
  expect(tool).toHaveBeenCalledTimes(3);
});

test("a nested run of an operation in progress is the tool's own error; the tool runs again", async () => {
  const testing = newTesting();
  const nested = { namespace: "charges", key: "order-7", waitMs: 0 };
  const { fencingToken } = granted(
    await testing.onceward.calls.claim({ namespace: "charges", key: "order-7" }),
  );
  const tool = vi.fn(() => testing.onceward.run(nested, () => "charged"));
  await expect(resume(testing).call(refund, tool)).rejects.toMatchObject({
    name: "InProgressError",
    claim: { key: "order-7" },
  });
  await testing.onceward.calls.release({ namespace: "charges", key: "order-7", fencingToken });
  expect(await resume(testing).call(refund, tool)).toBe("charged");
});

test("within one process, a repeated response gets the stored values", async () => {
  const run = resume(newTesting());
  const tool = vi.fn(() => "refunded");
  for (const response of [{}, {}]) await run.call({ ...refund, response }, tool);
  // Without the response, one call after the other is a repeat.
  for (const callId of ["a", "b", "b"]) await run.call({ ...other, step: 2, callId }, tool);
  expect(tool).toHaveBeenCalledTimes(2);
});

test("a step, a tool and a run have operations of their own", async () => {
  const testing = newTesting();
  const tool = vi.fn();
  await resume(testing).call(refund, tool);
  await resume(testing).call({ ...refund, step: 2 }, tool);
  await resume(testing).call({ ...refund, tool: "void" }, tool);
  await resume(testing, { runId: "run-2" }).call(refund, tool);
  expect(tool).toHaveBeenCalledTimes(4);
});

test("a call with its own key is recognised in another step and another run", async () => {
  const testing = newTesting();
  const tool = vi.fn(() => "refunded");
  await resume(testing).call({ ...refund, key: "refund:7" }, tool);
  const again = { ...refund, step: 9, key: "refund:7" };
  expect(await resume(testing, { runId: "run-2" }).call(again, tool)).toBe("refunded");
  const changed = resume(testing).call({ ...other, key: "refund:7" }, tool);
  await expect(changed).rejects.toMatchObject({
    reason: "ARGUMENTS_CHANGED",
    message: expect.not.stringContaining("next step"),
  });
  expect(tool).toHaveBeenCalledOnce();
});

test("a call without the key that is expected is refused, and so are options for no tool", async () => {
  const run = resume(newTesting());
  const execute = vi.fn();
  const _call = (input: unknown) => execute(input);
  const schema = { properties: { options: { properties: {} } } };
  const toolkits = [
    (options: object) => {
      const { refund } = aiSdkTools(run, { refund: { execute, inputSchema: schema } }, options);
      return refund.execute({ order: "7" }, { toolCallId: "a", messages: [] });
    },
    async (options: object) => {
      const [refund] = langChainTools(run, [{ name: "refund", schema, _call, invoke: _call }], options);
      return await refund?._call({ order: "7" });
    },
  ];
  for (const call of toolkits) {
    for (const key of [undefined, ""])
      await expect(call({ keys: { refund: () => key } })).rejects.toThrow("the key of refund must be 1-255");
    for (const option of ["keys", "keyArguments"])
      await expect(async () => call({ [option]: { refnud: "/key" } })).rejects.toThrow(`${option}.refnud`);
    for (const key of ["/kee", "/options/kee"])
      await expect(async () => call({ keyArguments: { refund: key } })).rejects.toThrow(
        "keyArguments.refund",
      );
  }
  expect(execute).not.toHaveBeenCalled();
});

test("a tool gets the derived key in its own argument, instead of what the model sends there", async () => {
  const testing = newTesting();
  const keyed = { ...refund, keyArgument: "/options/key" };
  const tool = vi
    .fn((_: Claim, input: unknown) => input)
    .mockImplementationOnce(() => {
      throw new Error("the provider was down");
    });
  await expect(resume(testing).call(keyed, tool)).rejects.toThrow("the provider was down");
  const input = { order: "7", cents: 500, options: { key: "the model's" } };
  const value = await resume(testing).call({ ...keyed, input }, tool);
  expect(value).toEqual({ ...input, options: { key: tool.mock.lastCall?.[0].deriveKey("tool") } });
  expect(tool.mock.calls.map(([, given]) => given)).toEqual([value, value]);
  expect(await resume(testing).call({ ...keyed, input: { ...input, options: {} } }, tool)).toEqual(value);
  for (const wrong of [{ input: { options: 1 } }, { keyArgument: "key" }])
    await expect(resume(testing).call({ ...keyed, ...wrong }, tool)).rejects.toThrow("must");
  expect(tool).toHaveBeenCalledTimes(2);
});

test("a namespace that requires times gets the run's or its id's; without either nothing runs", async () => {
  const testing = newTesting({ policy: { lateKeys: "REQUIRE_TIME" } });
  const tool = vi.fn(() => "refunded");
  const begun = { runCreatedAt: new Date() };
  expect(await resume(testing, begun).call(refund, tool)).toBe("refunded");
  expect(await resume(testing, { runId: newKey() }).call(refund, tool)).toBe("refunded");
  expect(tool).toHaveBeenCalledTimes(2);
  const byOrder = { ...refund, key: "refund:7", keyCreatedAt: begun.runCreatedAt };
  expect(await resume(testing, { runId: "run-2" }).call(byOrder, tool)).toBe("refunded");
  tool.mockClear();
  for (const call of [refund, { ...refund, key: "refund:8" }])
    await expect(resume(testing, { runId: "run-3" }).call(call, tool)).rejects.toThrow("key_created_at");

  testing.clock.advance(100 * 86_400_000);
  await expect(resume(testing, begun).call(refund, tool)).rejects.toMatchObject({ reason: "TOO_OLD" });
  await expect(resume(testing, { runId: "run-2" }).call(byOrder, tool)).rejects.toMatchObject({
    reason: "TOO_OLD",
  });
  expect(tool).not.toHaveBeenCalled();
  const invalid = { runCreatedAt: new Date(Number.NaN) };
  expect(() => resume(testing, invalid)).toThrow(/^runCreatedAt must be a valid Date/);
});

test("a model that changes the arguments in a repeated step is told so, and nothing runs", async () => {
  const testing = newTesting();
  await resume(testing).call(refund, () => "refunded");
  const tool = vi.fn();
  await expect(resume(testing).call(other, tool)).rejects.toMatchObject({
    name: "ToolBlockedError",
    reason: "ARGUMENTS_CHANGED",
    message: expect.stringContaining("in your next step"),
  });
  expect(tool).not.toHaveBeenCalled();
  await resume(testing).call({ ...other, step: 2 }, tool);
  expect(tool).toHaveBeenCalledOnce();
});

test.each(["HOLD", "RECLAIM"] as const)(
  "with policy %s, a call whose process died is not repeated, in its step or a later one",
  async (policy) => {
    const testing = underPolicy(policy);
    await crash(testing, refund);
    const tool = vi.fn();
    for (let restarts = 0; restarts < 2; restarts++) {
      const run = resume(testing);
      for (const step of [1, 2]) {
        await expect(run.call({ ...refund, step }, tool)).rejects.toMatchObject({
          reason: "AMBIGUOUS",
          message: expect.stringMatching(/^OUTCOME UNKNOWN.*"run-1:1:refund"\.$/),
        });
      }
    }
    expect(tool).not.toHaveBeenCalled();
  },
);

test("an outage does not make a call with an unknown outcome a new one in a later step", async () => {
  const testing = newTesting();
  await crash(testing, refund);
  const run = resume(testing, { timeoutMs: 1 });
  const tool = vi.fn();
  await expect(run.call(refund, tool)).rejects.toMatchObject({ reason: "AMBIGUOUS" });
  testing.faults.failNext("claim", "DATABASE_UNAVAILABLE", Number.POSITIVE_INFINITY);
  await expect(run.call({ ...refund, step: 2 }, tool)).rejects.toMatchObject({ reason: "UNAVAILABLE" });
  testing.faults.clear();
  await expect(run.call({ ...refund, step: 3 }, tool)).rejects.toMatchObject({ reason: "AMBIGUOUS" });
  expect(tool).not.toHaveBeenCalled();
});

test.each(["HOLD", "RECLAIM"] as const)(
  "with policy %s, a call whose outcome is found out gets its value, or runs",
  async (policy) => {
    const testing = underPolicy(policy);
    await crash(testing, refund);
    await crash(testing, { ...refund, step: 2 });
    const tool = vi.fn(() => "refunded now");
    const found = resume(testing, {
      resolve: (_, { step }) => (step === 1 ? happened("refunded") : didNotHappen()),
    });
    expect(await found.call(refund, tool)).toBe("refunded");
    expect(tool).not.toHaveBeenCalled();
    expect(await found.call({ ...refund, step: 2 }, tool)).toBe("refunded now");
    expect(await resume(testing).call(refund, tool)).toBe("refunded");
    expect(tool).toHaveBeenCalledOnce();
  },
);

test("a call whose record another caller has released runs again", async () => {
  const testing = underPolicy("HOLD");
  await crash(testing, refund);
  const record = { namespace: "agent-tools", key: "run-1:1:refund" };
  // As an administrator releases it, who found out that nothing happened.
  const { api } = testing.onceward;
  const found = granted(await api.claim({ ...record, owner: "person", acceptAmbiguous: true }));
  await api.release({ ...record, fencingToken: found.fencingToken });
  expect(await resume(testing).call(refund, () => "refunded")).toBe("refunded");
});

test("a call whose process died before the tool began runs again, also with policy HOLD", async () => {
  const testing = underPolicy("HOLD");
  for (const rpc of ["extendLease", "release"] as const) testing.faults.failNext(rpc, "NAMESPACE_DENIED");
  const tool = vi.fn(() => "refunded");
  await expect(resume(testing).call(refund, tool)).rejects.toMatchObject({ reason: "NAMESPACE_DENIED" });
  testing.clock.advance(30_000);
  expect(await resume(testing).call(refund, tool)).toBe("refunded");
  expect(tool).toHaveBeenCalledOnce();
});

const byOrder = { ...refund, key: "refund:7" };
const charge = () => Promise.reject(new OutcomeUnknownError("the connection broke"));

test.each<[string, (testing: TestingOnceward) => Promise<unknown>]>([
  ["a service", ({ onceward }) => onceward.run({ namespace: "agent-tools", key: byOrder.key }, charge)],
  ["a run under `policy`", (testing) => resume(testing, { onCrash: "policy" }).call(byOrder, charge)],
  [
    "a run whose TerminalError is not stored",
    (testing) => {
      testing.faults.failNext("complete", "NAMESPACE_DENIED");
      return resume(testing).call(byOrder, () => Promise.reject(new TerminalError("declined")));
    },
  ],
])("a call whose outcome %s left unknown does not run", async (_, attempt) => {
  const testing = underPolicy("HOLD");
  // This failure says nothing about later attempts.
  await expect(resume(testing).call(byOrder, () => Promise.reject(new Error("down")))).rejects.toThrow(
    "down",
  );
  await expect(attempt(testing)).rejects.toThrow();
  testing.clock.advance(30_000);
  const tool = vi.fn();
  await expect(resume(testing).call(byOrder, tool)).rejects.toMatchObject({ reason: "AMBIGUOUS" });
  expect(tool).not.toHaveBeenCalled();
});

test("a tool that throws runs again at the next attempt; a TerminalError is stored", async () => {
  const testing = newTesting();
  const tool = vi
    .fn(() => "refunded")
    .mockImplementationOnce(() => {
      throw new Error("the provider was down");
    });
  await expect(resume(testing).call(refund, tool)).rejects.toThrow("the provider was down");
  expect(await resume(testing).call(refund, tool)).toBe("refunded");
  const failing = vi.fn(() => {
    throw new TerminalError("card declined");
  });
  for (let tries = 0; tries < 2; tries++) {
    await expect(resume(testing).call({ ...refund, step: 2 }, failing)).rejects.toThrow("card declined");
  }
  expect(failing).toHaveBeenCalledOnce();
});

test("a call that waits for a tool which then throws runs the tool", async () => {
  const testing = newTesting();
  const failing = Promise.withResolvers<string>();
  const first = resume(testing).call(refund, () => failing.promise);
  await vi.waitUntil(() => testing.counts.granted === 1, 30_000);
  const second = resume(testing, { waitMs: 30_000 }).call(refund, () => "refunded");
  await vi.waitUntil(() => testing.waiting === 1, 30_000);
  failing.reject(new Error("the provider was down"));
  await expect(first).rejects.toThrow("the provider was down");
  expect(await second).toBe("refunded");
});

test("a tool that is stopped leaves an unknown outcome", async () => {
  const testing = newTesting();
  const controller = new AbortController();
  const stopped = resume(testing).call({ ...refund, signal: controller.signal }, (claim) => {
    controller.abort(new Error("the user left"));
    throw claim.signal.reason;
  });
  await expect(stopped).rejects.toMatchObject({ reason: "AMBIGUOUS" });
  testing.clock.advance(30_000);
  const again = resume(testing).call(refund, () => "refunded");
  await expect(again).rejects.toMatchObject({ reason: "AMBIGUOUS" });
});

test.each<[what: string, tool: (claim: Claim) => unknown]>([
  ["says so", () => Promise.reject(new OutcomeUnknownError("the connection broke"))],
  ["times out", () => Promise.reject(new DOMException("slow", "TimeoutError"))],
  ["marks its claim, and returns", (claim) => claim.outcomeUnknown().message],
  [
    "marks its claim, and throws",
    (claim) => {
      claim.outcomeUnknown();
      throw new Error("the framework's own");
    },
  ],
])("a tool that %s leaves an unknown outcome", async (_, tool) => {
  const testing = newTesting();
  await expect(resume(testing).call(refund, tool)).rejects.toMatchObject({ reason: "AMBIGUOUS" });
  testing.clock.advance(30_000);
  const again = resume(testing).call(refund, () => "refunded");
  await expect(again).rejects.toMatchObject({ reason: "AMBIGUOUS" });
});

test("under `onError`, only a NoEffectError of a tool lets it run again", async () => {
  const testing = newTesting();
  const fail = (error: Error) =>
    resume(testing, { onError: "unknown" }).call(refund, () => Promise.reject(error));
  await expect(fail(new NoEffectError("too expensive"))).rejects.toThrow("too expensive");
  await expect(fail(new Error("down"))).rejects.toMatchObject({ reason: "AMBIGUOUS" });
});

test.each([
  ["has no JSON form", () => 1n],
  ["is too large", () => "x".repeat(70_000)],
])(
  "a value that %s is returned once, and then the model is told that the call was done",
  async (_, value) => {
    const testing = newTesting();
    const tool = vi.fn<() => unknown>(value);
    expect(await resume(testing).call(refund, tool)).toEqual(value());
    await expect(resume(testing).call(refund, tool)).rejects.toMatchObject({ reason: "RESULT_UNAVAILABLE" });
    expect(tool).toHaveBeenCalledOnce();
  },
);

test("another process that runs the call, and a service that is away, are told to the model", async () => {
  const testing = newTesting();
  const held = Promise.withResolvers<void>();
  const tool = vi.fn(() => held.promise);
  const running = resume(testing).call(refund, tool);
  await vi.waitUntil(() => tool.mock.calls.length === 1, 30_000);
  await expect(resume(testing).call(refund, tool)).rejects.toMatchObject({ reason: "IN_PROGRESS" });
  held.resolve();
  await running;
  testing.faults.failNext("lookup", "DATABASE_UNAVAILABLE", Number.POSITIVE_INFINITY);
  const away = resume(testing, { timeoutMs: 1 }).call({ ...refund, step: 2 }, tool);
  await expect(away).rejects.toMatchObject({
    reason: "UNAVAILABLE",
    message: expect.stringMatching(/^NOT RUN/),
  });
  expect(tool).toHaveBeenCalledOnce();
});

test("invalid options and calls are refused by name", async () => {
  const { onceward } = newTesting();
  expect(() => createAgentRun(onceward, { namespace: "agent-tools", runId: "" })).toThrow(/^runId must be/);
  expect(() =>
    createAgentRun(onceward, { namespace: "agent-tools", runId: "a", onCrash: "HOLD" as never }),
  ).toThrow(/^onCrash must be/);
  const run = createAgentRun(onceward, { namespace: "agent-tools", runId: "a" });
  await expect(run.call({ ...refund, tool: "" }, () => {})).rejects.toThrow(/^tool must be/);
  await expect(run.call({ ...refund, step: "" }, () => {})).rejects.toThrow(/^step must be/);
});
