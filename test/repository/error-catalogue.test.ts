import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type DescEnum, getOption } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { commentOf } from "../../deploy/site/comments.ts";
import { reason as reasonFacts } from "../../server/src/gen/onceward/v1/facts_pb.ts";
import { CODES } from "../../server/src/records/batch/batch-errors.ts";
import { PROTO_FILES, remedyOf } from "../tools/generate/openapi/proto-files.ts";

const TESTS = fileURLToPath(new URL("../", import.meta.url));
/** Folders of tests that call a server. */
const TESTS_OF_SERVER = ["admin", "contract", "outage", "store", "transports"];

function reasonsOf(name: string) {
  const { values } = PROTO_FILES.getEnum(`onceward.v1.${name}`) as DescEnum;
  return values.slice(1).map((value) => ({
    value,
    reason: value.localName,
    remedy: remedyOf(value),
    ...getOption(value, reasonFacts),
  }));
}

/** Returns the texts of all tests of a folder. */
async function testsIn(folder: string): Promise<string> {
  const names = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith(".test.ts"));
  return (await Promise.all(names.map((name) => readFile(join(folder, name), "utf8")))).join("\n");
}

test.each(reasonsOf("ErrorReason"))(
  "$reason has a google.rpc.Code, a remedy and, for a retry, a RetryInfo",
  (facts) => {
    const { value, reason, code, remedy } = facts;
    expect([...CODES.keys()]).toContain(code);
    expect(remedy).not.toBe("");
    const hasDelay = code === "UNAVAILABLE" || reason.startsWith("QUOTA_");
    expect(commentOf(value).includes("google.rpc.RetryInfo")).toBe(hasDelay);
  },
);

test.each(reasonsOf("ClientReason"))("$reason of the client has a remedy and no code", ({ code, remedy }) => {
  expect(code).toBe("");
  expect(remedy).not.toBe("");
});

test("each reason is in a test that calls a server", async () => {
  const texts = await Promise.all(TESTS_OF_SERVER.map((folder) => testsIn(join(TESTS, folder))));
  const named = new Set(texts.join("\n").match(/\b[A-Z_]+\b/g));
  const reasons = reasonsOf("ErrorReason").map(({ reason }) => reason);
  expect(reasons.filter((reason) => !named.has(reason))).toEqual([]);
});
