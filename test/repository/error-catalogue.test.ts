import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { CATALOGUE } from "../../server/src/core/domain/refusal.ts";
import { ErrorReasonSchema } from "../../server/src/gen/onceward/v1/errors_pb.ts";

const PROTO = fileURLToPath(new URL("../../proto/onceward/v1/errors.proto", import.meta.url));

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
});
