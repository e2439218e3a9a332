import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { CATALOGUE } from "../../server/src/core/domain/refusal.ts";
import { ErrorReasonSchema } from "../../server/src/gen/onceward/v1/errors_pb.ts";

const PROTO = fileURLToPath(new URL("../../proto/onceward/v1/errors.proto", import.meta.url));
const PYTHON = fileURLToPath(new URL("../../clients/python/src/onceward/", import.meta.url));
const TESTS = fileURLToPath(new URL("../", import.meta.url));
/** Folders of tests that call a server. */
const TESTS_OF_SERVER = ["admin", "contract", "outage", "store", "transports"];

/** Matches an enum value with the comment above it. */
const VALUE = /((?: {2}\/\/[^\n]*\n)+) {2}ERROR_REASON_(\w+) = \d+;/g;

/** Returns the google.rpc.Code that each reason's comment in the proto names first. */
async function readDocumentedCodes(): Promise<ReadonlyMap<string, string | undefined>> {
  const proto = await readFile(PROTO, "utf8");
  return new Map(
    [...proto.matchAll(VALUE)].map(([, comment = "", reason = ""]) => [
      reason,
      /^ {2}\/\/ ([A-Z_]+)[.,]/.exec(comment)?.[1],
    ]),
  );
}

/** Returns the texts of all tests of a folder. */
async function testsIn(folder: string): Promise<string> {
  const names = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith(".test.ts"));
  return (await Promise.all(names.map((name) => readFile(join(folder, name), "utf8")))).join("\n");
}

describe("the error catalogue", () => {
  test("has exactly the reasons of the proto's enum", () => {
    const inProto = ErrorReasonSchema.values.map((value) => value.localName);
    expect(["UNSPECIFIED", ...Object.keys(CATALOGUE)].sort()).toEqual(inProto.sort());
  });

  test("gives each reason the code that the proto's comment names first", async () => {
    const documented = await readDocumentedCodes();
    expect(documented.get("UNSPECIFIED")).toBeUndefined();
    expect(Object.fromEntries([...documented].filter(([reason]) => reason !== "UNSPECIFIED"))).toEqual(
      CATALOGUE,
    );
  });

  test("documents a RetryInfo for every reason that is UNAVAILABLE or a quota", async () => {
    const proto = await readFile(PROTO, "utf8");
    for (const [, comment = "", reason = ""] of proto.matchAll(VALUE)) {
      expect([reason, comment.includes("google.rpc.RetryInfo")]).toEqual([
        reason,
        comment.includes("UNAVAILABLE") || reason.startsWith("QUOTA_"),
      ]);
    }
  });

  test("has each reason in a test that calls a server", async () => {
    const texts = await Promise.all(TESTS_OF_SERVER.map((folder) => testsIn(join(TESTS, folder))));
    const named = new Set(texts.join("\n").match(/\b[A-Z_]+\b/g));
    expect(Object.keys(CATALOGUE).filter((reason) => !named.has(reason))).toEqual([]);
  });

  test("has each reason in Python, with an error and a remedy", async () => {
    const read = async (file: string, line: RegExp) =>
      [...(await readFile(`${PYTHON}${file}`, "utf8")).matchAll(line)].map(([, reason]) => reason);
    const errors = await read("_catalogue.py", /^ {4}_reason = "(\w+)"$/gm);
    const remedies = await read("_remedies.py", /^ {4}"(\w+)": /gm);
    const reasons = Object.keys(CATALOGUE);
    expect(errors.sort()).toEqual(reasons.sort());
    // The client has reasons of its own beside the service's.
    expect(remedies).toEqual(expect.arrayContaining(reasons));
  });
});
