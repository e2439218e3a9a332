import fc from "fast-check";
import { expect, test } from "vitest";
import type { CachedCompletion } from "../record.ts";
import { encodeMetadata } from "../result-bytes.ts";
import { decodeCompletion, encodeCompletion } from "./completion-bytes.ts";

const bytes = (constraints: fc.IntArrayConstraints) => fc.uint8Array(constraints).map(Buffer.from);
const instant = fc.double({ min: 0, max: 4e12, noNaN: true, noDefaultInfinity: true });

const completions: fc.Arbitrary<CachedCompletion> = fc.record({
  fingerprint: fc.option(bytes({ minLength: 32, maxLength: 32 }), { nil: undefined }),
  firstClaimedAtMs: instant,
  completedAtMs: instant,
  resultExpiresAtMs: instant,
  claimId: fc.oneof(fc.constant(""), fc.string({ unit: "grapheme", maxLength: 20 })),
  expiresAtMs: instant,
  result: fc.record({
    kind: fc.constantFrom("success" as const, "failure" as const),
    contentType: fc.string({ unit: "binary" }),
    metadataJson: fc
      .dictionary(fc.string({ minLength: 1 }), fc.string({ unit: "binary" }), { noNullPrototype: true })
      .map(encodeMetadata),
    payload: bytes({ maxLength: 300 }),
  }),
});

test("decodes the completion that was encoded", () => {
  fc.assert(
    fc.property(completions, (completion) => {
      expect(decodeCompletion(encodeCompletion(completion))).toEqual(completion);
    }),
  );
});
