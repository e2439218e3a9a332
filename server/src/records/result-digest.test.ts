import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Result } from "./record.ts";
import { decodeMetadata, encodeMetadata } from "./result-bytes.ts";
import { digestResult } from "./result-digest.ts";

const text = fc.string({ unit: fc.constantFrom("a", "b", "1", ":", "0", "\u20ac"), maxLength: 6 });

const result: fc.Arbitrary<Result> = fc.record({
  kind: fc.constantFrom("success", "failure"),
  payload: text.map((payload) => Buffer.from(payload)),
  contentType: text,
  metadataJson: fc.dictionary(text, text, { maxKeys: 3 }).map(encodeMetadata),
});

/** Returns all parts of a result that a replay returns, as comparable text. */
function shown({ kind, payload, contentType, metadataJson }: Result): string {
  return JSON.stringify([
    kind,
    payload.toString(),
    contentType,
    Object.entries(decodeMetadata(metadataJson)).sort(),
  ]);
}

describe("a result's digest", () => {
  test("is SHA-256", () => {
    const payload = Buffer.alloc(0);
    expect(digestResult({ kind: "success", payload, contentType: "", metadataJson: "" })).toHaveLength(32);
  });

  test("does not depend on the order of metadata", () => {
    fc.assert(
      fc.property(result, (one) => {
        const metadata = Object.fromEntries(Object.entries(decodeMetadata(one.metadataJson)).reverse());
        expect(digestResult({ ...one, metadataJson: encodeMetadata(metadata) })).toEqual(digestResult(one));
      }),
    );
  });

  test("differs exactly when replays differ", () => {
    fc.assert(
      fc.property(result, result, (one, other) => {
        const same = digestResult(one).equals(digestResult(other));
        expect(same).toBe(shown(one) === shown(other));
      }),
      { numRuns: 2000 },
    );
  });

  test("distinguishes metadata from a payload with the same bytes", () => {
    const metadataJson = encodeMetadata({ a: "b" });
    const one: Result = { kind: "success", payload: Buffer.alloc(0), contentType: "", metadataJson };
    const other: Result = { ...one, metadataJson: "", payload: Buffer.from("1:a1:b") };
    expect(digestResult(one)).not.toEqual(digestResult(other));
  });
});
