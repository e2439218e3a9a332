import { expect, test } from "vitest";
import { parsePolicy, valueAt } from "./policy.ts";

const tool = { key: ["/orderId"] };
const byRun = { run: { id: "/run", step: "/step" } };
const resolve = { tool: "find", arguments: {}, happened: { "/status": "done" } };
const parse = (policy: unknown) => parsePolicy(JSON.stringify(policy));

test("a policy names the guarded tools, and has defaults", () => {
  const pay = { namespace: "own", ...byRun, onCrash: "policy", keyArgument: "/key", timeoutMs: 1000 };
  const policy = parse({ namespace: "mcp-tools", tools: { refund: tool, pay } });
  expect(policy.get("refund")).toEqual({
    namespace: "mcp-tools",
    name: { by: "arguments", pointers: ["/orderId"] },
    createdAt: undefined,
    ignore: [],
    keyArgument: undefined,
    onCrash: "hold",
    onToolError: "unknown",
    marksBegin: false,
    onUnavailable: "throw",
    saysReplayed: false,
    resolve: undefined,
    leaseMs: undefined,
    timeoutMs: 300_000,
  });
  expect(policy.get("pay")).toMatchObject({
    namespace: "own",
    name: { by: "run", id: "/run", step: "/step" },
    onCrash: "policy",
    timeoutMs: 1000,
  });
});

const refund = (members: object) => ({ namespace: "a", tools: { refund: { ...tool, ...members } } });
const resolving = (members: object) => refund({ resolve: { ...resolve, ...members } });

test.each<[unknown, string]>([
  [[], "the policy must be an object"],
  [{ namespace: "a", tools: {} }, "tools must have 1-1000 members"],
  [{ namespace: "a", tools: { refund: {} } }, 'tools.refund must have either "key"'],
  [refund({ keys: 1 }), "tools.refund has the unknown member keys"],
  [{ tools: { refund: tool } }, "tools.refund.namespace must be set"],
  [refund({ key: [] }), "tools.refund.key must be an array of 1-16"],
  [refund({ key: ["id"] }), "tools.refund.key[0] must be a JSON Pointer"],
  [refund({ createdAt: "at" }), "tools.refund.createdAt must be a JSON"],
  [refund({ onCrash: "x" }), 'tools.refund.onCrash must be "hold" or'],
  [refund({ leaseMs: 1 }), "tools.refund.leaseMs must be a whole number"],
  [refund({ keyArgument: "/orderId" }), "tools.refund.keyArgument must not be"],
  [refund({ keyArgument: "/orderId/key" }), "tools.refund.keyArgument must not be"],
  [refund({ createdAt: "/at/time", keyArgument: "/at" }), "tools.refund.keyArgument must not be"],
  [refund({ key: undefined, ...byRun, onUnavailable: "proceed" }), 'onUnavailable "proceed" needs "key"'],
  [refund({ onUnavailable: "proceed" }), 'tools.refund.onUnavailable needs "keyArgument"'],
  [refund({ onCrash: "policy" }), 'tools.refund.onCrash needs "keyArgument"'],
  [resolving({ hapened: {} }), "tools.refund.resolve has the unknown member hapened"],
  [resolving({ happened: {} }), "tools.refund.resolve.happened must have 1-16 members"],
  [resolving({ happened: { status: 1 } }), "tools.refund.resolve.happened.status must be a JSON Pointer"],
  [refund({ namespace: "a b" }), "tools.refund.namespace must be"],
  [resolving({ arguments: { id: { valeu: 1 } } }), "resolve.arguments.id has the unknown member valeu"],
])("the policy %j is refused by name", (policy, message) => {
  expect(() => parse(policy)).toThrow(message);
});

test("a policy that is not JSON is refused", () => {
  expect(() => parsePolicy("{")).toThrow("The policy must be JSON");
});

test("a JSON Pointer finds members and elements, and none that are inherited", () => {
  const value = { a: [{ "b/c": 1 }] };
  expect(valueAt(value, "/a/0/b~1c")).toBe(1);
  expect(valueAt(value, "/a/1")).toBeUndefined();
  expect(valueAt(value, "/constructor")).toBeUndefined();
});
