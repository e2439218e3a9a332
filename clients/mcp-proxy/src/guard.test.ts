import { createOnceward } from "@onceward/client";
import { NoEffectError, OutcomeUnknownError } from "@onceward/client/agents";
import { createTestingOnceward } from "@onceward/client/testing";
import { expect, onTestFinished, test, vi } from "vitest";
import { parseExact } from "./exact-json.ts";
import { type CallParams, Guard, type ToolResult } from "./guard.ts";
import { parsePolicy, type ToolPolicy } from "./policy.ts";

const AT = "2026-01-31T09:00:00+01:00";

function newGuard(tool: object, lateKeys: "REQUIRE_TIME" | "RUN" = "REQUIRE_TIME") {
  const testing = createTestingOnceward({ policy: { lateKeys } });
  onTestFinished(() => testing.onceward.close());
  const policy = parsePolicy(JSON.stringify({ namespace: "mcp-tools", tools: { refund: tool } }));
  const send = vi.fn<(params: CallParams) => Promise<ToolResult>>(async () => ({ content: [] }));
  const read = vi.fn<(params: CallParams) => Promise<ToolResult>>();
  const warn = vi.fn<(text: string) => void>();
  const startAgain = () => {
    const onceward = createOnceward({ transport: testing.transport, timeoutMs: 1, waitMs: 0 } as never);
    onTestFinished(() => onceward.close({ timeoutMs: 0 }));
    const guard = new Guard(onceward, policy, warn);
    return (params: object) =>
      guard.call(
        { name: "refund", ...params },
        policy.get("refund") as ToolPolicy,
        new AbortController().signal,
        { send, read },
      );
  };
  return { call: startAgain(), startAgain, send, read, warn, ...testing };
}

test("a late call gets the time that its arguments or its run have, and is refused by it", async () => {
  const byOrder = newGuard({ key: ["/order"], createdAt: "/orderedAt" });
  const late = { reason: "TOO_OLD" };
  const inReason = ({ reason }: { reason: string }) => ({
    isError: true,
    _meta: { "onceward/reason": reason },
  });
  const order = { order: "7", orderedAt: new Date().toISOString() };
  expect(await byOrder.call({ arguments: order })).toEqual({ content: [] });
  const old = { order: "8", orderedAt: AT };
  expect(await byOrder.call({ arguments: old })).toMatchObject(inReason(late));
  const byRun = newGuard({ run: { id: "/run", step: "/step" }, createdAt: "/began" });
  expect(await byRun.call({ _meta: { run: "r", step: 1, began: AT } })).toMatchObject(inReason(late));
  expect(byOrder.send).toHaveBeenCalledOnce();
  expect(byRun.send).not.toHaveBeenCalled();
});

test.each([undefined, "yesterday", "2026-01-31T09:00:00", 5])(
  "the time %j is invalid, and nothing runs",
  async (at) => {
    const { call, send } = newGuard({ key: ["/order"], createdAt: "/orderedAt" });
    const reply = await call({ arguments: { order: "7", orderedAt: at } });
    expect(JSON.stringify(reply)).toContain("needs the time of the operation at /orderedAt");
    expect(send).not.toHaveBeenCalled();
  },
);

test("with marksBegin, a call is marked before it is sent", async () => {
  const policy = { key: ["/order"], keyArgument: "/key", onCrash: "policy", marksBegin: true };
  const { call, send, faults } = newGuard(policy, "RUN");
  const order = { arguments: { order: "7" } };
  faults.failNext("extendLease", "NAMESPACE_DENIED");
  expect(JSON.stringify(await call(order))).toContain("NOT RUN");
  expect(send).not.toHaveBeenCalled();
  expect(await call(order)).toEqual({ content: [] });
});

const keyed = { key: ["/order"], keyArgument: "/options/key", onUnavailable: "proceed" };
const because = (reason: string) => ({ isError: true, _meta: { "onceward/reason": reason } });
const outage = ["claim", "DATABASE_UNAVAILABLE", Number.POSITIVE_INFINITY] as const;

test("each attempt sends the derived key, also unguarded, instead of what the host sends there", async () => {
  const { startAgain, send, faults } = newGuard(keyed, "RUN");
  const order = { order: "7", cents: parseExact("9007199254740993") };
  const attempt = (more: object) => startAgain()({ arguments: { ...order, ...more } });
  faults.failNext(...outage);
  const unguarded = { _meta: { "onceward/unguarded": true }, content: [{ type: "text" }] };
  expect(await attempt({ options: null })).toMatchObject(unguarded);
  faults.clear();
  send.mockRejectedValueOnce(new NoEffectError("The server is unreachable."));
  // It says nothing of the unguarded call.
  const notSent = {
    ...because("NOT_SENT"),
    content: [{ text: expect.not.stringContaining("was not done") }],
  };
  expect(await attempt({})).toMatchObject(notSent);
  expect(await attempt({ options: { key: "the model's" } })).toEqual({ content: [] });
  expect(await attempt({ options: {} })).toMatchObject({ _meta: { "onceward/replayed": true } });
  const sent = send.mock.calls.map(([params]) => JSON.stringify(params.arguments));
  expect(sent[0]).toMatch(/^{"order":"7","cents":9007199254740993,"options":{"key":"[\w-]{43}"}}$/);
  expect(sent).toEqual(Array(3).fill(sent[0]));
  for (const number of ["9007199254740992", "9007199254740993"]) {
    await attempt({ order: parseExact(number) });
    const others = JSON.stringify(send.mock.lastCall?.[0].arguments);
    expect(others).toContain(`"order":${number},`);
    expect(others).not.toBe(sent[0]?.replace('"7"', number));
  }
  expect(send).toHaveBeenCalledTimes(5);
  for (const options of ["a", [], order.cents])
    expect(await attempt({ options })).toMatchObject(because("INVALID_REQUEST"));
});

test("during an outage, a call that this process runs or knows to be unknown is not sent again", async () => {
  const { call, send, faults, warn } = newGuard(keyed, "RUN");
  const asked = Promise.withResolvers<ToolResult>();
  send.mockReturnValueOnce(asked.promise);
  const order = { arguments: { order: "7" } };
  const first = call(order);
  await vi.waitUntil(() => send.mock.calls.length === 1);
  faults.failNext(...outage);
  const unavailable = await call(order);
  expect(unavailable).toMatchObject(because("UNAVAILABLE"));
  expect(JSON.stringify(unavailable)).not.toContain("was not done");
  asked.reject(new OutcomeUnknownError("the server died"));
  expect(await first).toMatchObject(because("AMBIGUOUS"));
  expect(await call(order)).toMatchObject(because("UNAVAILABLE"));
  expect(warn.mock.calls).toEqual([[expect.stringContaining("The test lets this claim fail.")]]);
  faults.clear();
  // Although the lease has not ended.
  expect(await call(order)).toMatchObject(because("AMBIGUOUS"));
  expect(send).toHaveBeenCalledOnce();
});

test.each([false, true])(
  "with saysReplayed %j, a replay has marks that no server can set",
  async (saysReplayed) => {
    const { call, send } = newGuard({ key: ["/order"], saysReplayed }, "RUN");
    const marks = ["replayed", "completedAt", "unguarded", "reason", "guarded"];
    const faked = Object.fromEntries(marks.map((mark) => [`onceward/${mark}`, "faked"]));
    const content = [{ type: "text", text: "done" }];
    // JavaScript has rounded the number that the server wrote.
    const result = { content, structuredContent: { id: 12345678901234567000 } };
    send.mockResolvedValueOnce({ ...result, _meta: { own: 1, ...faked } });
    expect(await call({ arguments: { order: "7" } })).toEqual({ ...result, _meta: { own: 1 } });
    const replay = await call({ arguments: { order: "7" } });
    expect(replay.structuredContent).toEqual(result.structuredContent);
    const completedAt = expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/);
    expect(replay._meta).toEqual({ own: 1, "onceward/replayed": true, "onceward/completedAt": completedAt });
    expect(replay.content).toEqual([
      ...content,
      ...(saysReplayed ? [{ type: "text", text: expect.any(String) }] : []),
    ]);
  },
);

const resolve = {
  tool: "find",
  arguments: { order: "/order", id: "/options/key", limit: { value: 1 } },
  happened: { "/status": ["done", "paid"], "/limit": 1 },
  didNotHappen: { "/data": [[]] },
  result: "/refund",
};
const textOf = (text: string) => ({ content: [{ type: "text", text }] });

/** Returns what a call gets, some time after an attempt with an unknown outcome. */
async function afterUnknown(answer: ToolResult | Error, more: object = {}, passMs = 60_000) {
  const policy = { ...keyed, timeoutMs: 10_000, leaseMs: 1000, resolve: { ...resolve, ...more } };
  const guard = newGuard(policy, "RUN");
  guard.send.mockRejectedValueOnce(new OutcomeUnknownError("the server died"));
  await guard.call({ arguments: { order: "7" } });
  guard.clock.advance(passMs);
  guard.read.mockImplementation(async () => {
    if (answer instanceof Error) throw answer;
    return answer;
  });
  return { ...guard, result: await guard.startAgain()({ arguments: { order: "7" } }) };
}

test("a tool finds out that a call happened: its result is stored", async () => {
  const structuredContent = { status: "paid", limit: 1, refund: { id: "re_1" } };
  const { result, read, send, call } = await afterUnknown({ structuredContent });
  const found = { ...textOf('{"id":"re_1"}'), structuredContent: { id: "re_1" } };
  expect(result).toEqual({ ...found, _meta: { "onceward/replayed": true } });
  const options = send.mock.lastCall?.[0].arguments?.options as { key: string };
  expect(read.mock.calls).toEqual([[{ name: "find", arguments: { order: "7", id: options.key, limit: 1 } }]]);
  expect(await call({ arguments: { order: "7" } })).toMatchObject(found);
  expect(send).toHaveBeenCalledOnce();
});

test.each<[string, ToolResult | Error, object?]>([
  ["answers otherwise", { structuredContent: { status: "paid", limit: 2 } }],
  ["answers with text", textOf("done")],
  ["answers with an error", { ...textOf('{"data":[]}'), isError: true }],
  ["has no answer", new Error("down")],
  ["lacks an argument", textOf('{"data":[]}'), { arguments: { id: "/id" } }],
  ["knows no absence", textOf('{"data":[]}'), { didNotHappen: undefined }],
])("a tool that %s leaves the outcome unknown", async (_, answer, more) => {
  const { result, send } = await afterUnknown(answer, more);
  expect(result).toMatchObject(because("AMBIGUOUS"));
  expect(send).toHaveBeenCalledOnce();
});

test("a call that a tool does not find runs, once the server has had its time", async () => {
  const none = textOf('{"data":[]}');
  expect((await afterUnknown(none, {}, 2000)).result).toMatchObject(because("IN_PROGRESS"));
  expect((await afterUnknown(none)).result).toEqual({ content: [] });
});
