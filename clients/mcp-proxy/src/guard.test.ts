import { createTestingOnceward } from "@onceward/client/testing";
import { expect, onTestFinished, test, vi } from "vitest";
import { Guard } from "./guard.ts";
import { parsePolicy, type ToolPolicy } from "./policy.ts";

const AT = "2026-01-31T09:00:00+01:00";

function newGuard(tool: object) {
  const testing = createTestingOnceward({ policy: { lateKeys: "REQUIRE_TIME" } });
  onTestFinished(() => testing.onceward.close());
  const policy = parsePolicy(JSON.stringify({ namespace: "mcp-tools", tools: { refund: tool } }));
  const guard = new Guard(testing.onceward, policy);
  const send = vi.fn(async () => ({ content: [] }));
  const call = (params: object) =>
    guard.call(
      { name: "refund", ...params },
      policy.get("refund") as ToolPolicy,
      new AbortController().signal,
      send,
    );
  return { call, send, ...testing };
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
  const policy = { key: ["/order"], createdAt: "/orderedAt", onCrash: "policy", marksBegin: true };
  const { call, send, onceward } = newGuard(policy);
  const extend = vi.spyOn(onceward.calls, "extendLease");
  await call({ arguments: { order: "7", orderedAt: new Date().toISOString() } });
  expect(extend.mock.calls).toMatchObject([[{ begin: true }, undefined]]);
  expect(send).toHaveBeenCalledAfter(extend);
});

test("without a time the error names it, and nothing runs", async () => {
  const { call, send } = newGuard({ key: ["/order"] });
  expect(JSON.stringify(await call({ arguments: { order: "7" } }))).toContain("key_created_at");
  expect(send).not.toHaveBeenCalled();
});
