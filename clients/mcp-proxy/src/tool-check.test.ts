import { expect, test } from "vitest";
import { parsePolicy } from "./policy.ts";
import { checkTools, withoutKeyArguments } from "./tool-check.ts";

const text = { type: "string" };
const policyOf = (tool: object) =>
  parsePolicy(JSON.stringify({ namespace: "a", tools: { pay: { key: ["/order"], ...tool } } }));
const check = (policy: object, ...tools: readonly object[]) =>
  checkTools(policyOf(policy), async () => ({ jsonrpc: "2.0", id: 1, result: { tools } }));
const pay = (inputSchema: unknown) => ({ name: "pay", inputSchema });

test("an argument for the key is found at any depth, and the host does not see it", async () => {
  const options = { type: "object", properties: { key: text, note: text }, required: ["key", "note"] };
  const tool = pay({ properties: { order: text, options }, required: ["options"] });
  await check({ keyArgument: "/options/key" }, tool);
  const other = { ...tool, name: "other" };
  const left = { ...options, properties: { note: text }, required: ["note"] };
  const seen = withoutKeyArguments(policyOf({ keyArgument: "/options/key" }), { tools: [tool, other] });
  expect(seen).toEqual({
    tools: [
      {
        ...pay({ properties: { order: text, options: left }, required: ["options"] }),
        _meta: { "onceward/guarded": true },
      },
      other,
    ],
  });
});

test("an object within the arguments that takes any member takes the key", async () => {
  const tool = pay({ properties: { order: text, request: { type: "object", additionalProperties: true } } });
  await check({ keyArgument: "/request/key" }, tool);
  await expect(check({ keyArgument: "/other/key" }, tool)).rejects.toThrow(
    "tools.pay.keyArgument /other/key",
  );
});

test.each([
  ["is missing", { properties: { order: text } }],
  ["is not listed by an open schema", { properties: { order: text }, additionalProperties: true }],
  ["is inherited by every object", { properties: Object.create({ key: text }) }],
  ["is defined elsewhere", { properties: { order: text }, allOf: [{ properties: { key: text } }] }],
  ["is defined by a reference", { $ref: "#/$defs/Pay", $defs: { Pay: { properties: { key: text } } } }],
  ["is a number", { properties: { key: { type: "integer" } } }],
  ["is too short", { properties: { key: { ...text, maxLength: 36 } } }],
  ["is a UUID", { properties: { key: { ...text, format: "uuid" } } }],
  ["has no schema", undefined],
])("a policy does not fit a tool whose argument for the key %s", async (_, inputSchema) => {
  await expect(check({ keyArgument: "/key" }, pay(inputSchema))).rejects.toThrow(
    "tools.pay.keyArgument /key",
  );
});

test.each(["key", "ignore"])("the pointers of %s are arguments of the tool, or may be", async (member) => {
  const refused = `tools.pay.${member} /note/order`;
  const checkWith = (note: unknown) =>
    check({ [member]: ["/note/order"] }, pay({ properties: { order: text, note } }));
  await expect(checkWith({ properties: { text } })).rejects.toThrow(refused);
  for (const note of [{ properties: { order: text } }, {}, { properties: {}, anyOf: [] }])
    await checkWith(note);
  await expect(check({ [member]: ["/odrer"] }, pay({ properties: { order: text } }))).rejects.toThrow(
    "/odrer",
  );
});

test("a tool that is not known only to read does not find out what happened", async () => {
  const resolve = { tool: "find", arguments: {}, happened: { "/status": "done" } };
  const find = (annotations?: object) => check({ resolve }, pay({}), { name: "find", annotations });
  for (const annotations of [undefined, { readOnlyHint: false }, { readOnlyHint: "true" }])
    await expect(find(annotations)).rejects.toThrow("must be a tool that the server lists with readOnlyHint");
  await find({ readOnlyHint: true });
});
