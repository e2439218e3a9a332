import { expect, test } from "vitest";
import { scanJson } from "./scan-json.ts";

const scan = (json: string, maxValues = 10) => scanJson(Buffer.from(json), maxValues);
const refused = expect.objectContaining({ reason: "INVALID_REQUEST" });

test.each([
  "",
  "{}",
  '{"key":"a","lease":"30s","items":[{},{}]}',
  `${"[".repeat(5)}${"]".repeat(5)}`,
  '{"key":"[[[[[[[[[[[[,,,,,,,,,,,,,,"}',
  String.raw`{"key":"a\"[[[[[[[[[[[[[\\"}`,
  `{"payload":"${"9".repeat(5000)}a"}`,
])("%.40s is let through", (json) => {
  scan(json);
});

test.each([
  ["more elements than there may be", `[${"0,".repeat(10)}0]`],
  ["more members than there may be", `{${Array.from({ length: 11 }, (_, i) => `"x${i}":0`).join()}}`],
  ["more empty objects than there may be", "{}".repeat(11)],
  ["a text of many digits", `{"fencingToken":"${"9".repeat(5000)}"}`],
  ["a text of many spaces and a digit", `{"fencingToken":"${" ".repeat(5000)}1"}`],
])("%s are refused", (_name, json) => {
  expect(() => scan(json)).toThrow(refused);
});

test("more than 32 levels are refused", () => {
  scan("[".repeat(32), 100);
  expect(() => scan("[".repeat(33), 100)).toThrow(refused);
});
