import fc from "fast-check";
import { expect, test } from "vitest";
import { recordIn } from "../../../test/helpers/domain.ts";
import type { LiveRecord } from "../domain/record.ts";
import { decodeEntry, encodeEntry } from "./entry.ts";

const NAME = "installation:0:1:7:chargesorder-1";
const SECRET = "a pepper of thirty-two characters";
const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length }).map(Buffer.from);
const instant = fc.double({ min: 0, max: 4e12, noNaN: true, noDefaultInfinity: true }).map((ms) => ms + 0);

const completed: fc.Arbitrary<LiveRecord> = fc
  .record({
    fencingToken: fc.bigInt({ min: 1n, max: 2n ** 63n - 1n }),
    attempt: fc.nat(),
    claimId: fc.string({ unit: "binary" }),
    owner: fc.string({ unit: "binary" }),
    fingerprint: fc.option(bytes(32), { nil: undefined }),
    firstClaimedAtMs: instant,
    expiresAtMs: instant,
    seenAtMs: instant,
    phase: fc.record({
      kind: fc.constant("completed" as const),
      completedAtMs: instant,
      resultExpiresAtMs: instant,
      resultDigest: bytes(32),
      result: fc.record({
        kind: fc.constantFrom("success" as const, "failure" as const),
        contentType: fc.string({ unit: "binary" }),
        metadata: fc.dictionary(fc.string({ minLength: 1 }), fc.string({ unit: "binary" }), {
          noNullPrototype: true,
        }),
        payload: fc.uint8Array({ maxLength: 300 }).map(Buffer.from),
      }),
    }),
  })
  .map((fields) => recordIn("completed", { ...fields, leaseRemainingMs: 0 }));

function encoded(record = recordIn("completed")): Buffer {
  const entry = encodeEntry(NAME, record, SECRET);
  if (entry === undefined) throw new Error("the record has no entry");
  return entry;
}

test("a record is read as it was written", () => {
  fc.assert(
    fc.property(completed, (record) => {
      expect(decodeEntry(NAME, record.id, encoded(record), SECRET)).toEqual(record);
    }),
  );
});

test("an entry of which any bit is another is none", () => {
  const whole = encoded();
  const { id } = recordIn("completed");
  for (let bit = 0; bit < whole.length * 8; bit++) {
    const altered = Buffer.from(whole);
    altered.writeUInt8(altered.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
    expect(decodeEntry(NAME, id, altered, SECRET)).toBeUndefined();
  }
});

test("an entry that is cut off anywhere, or goes on, is none", () => {
  const whole = encoded();
  const { id } = recordIn("completed");
  for (let length = 0; length < whole.length; length++) {
    expect(decodeEntry(NAME, id, whole.subarray(0, length), SECRET)).toBeUndefined();
  }
  expect(decodeEntry(NAME, id, Buffer.concat([whole, Buffer.alloc(1)]), SECRET)).toBeUndefined();
});

test("an entry under any other name is none", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (name) => {
      fc.pre(name !== NAME);
      expect(decodeEntry(name, recordIn("completed").id, encoded(), SECRET)).toBeUndefined();
    }),
  );
});

test("bytes that nobody wrote are no entry", () => {
  fc.assert(
    fc.property(fc.uint8Array(), (noise) => {
      expect(decodeEntry(NAME, recordIn("completed").id, Buffer.from(noise), SECRET)).toBeUndefined();
    }),
  );
});

test("a record that is not completed, or lost its result, has no entry", () => {
  for (const phase of ["inProgress", "lapsed", "ambiguous", "released"] as const)
    expect(encodeEntry(NAME, recordIn(phase), SECRET)).toBeUndefined();
  const { phase } = recordIn("completed");
  if (phase.kind !== "completed") throw new Error("the record is not completed");
  const expired = recordIn("completed", { phase: { ...phase, result: undefined } });
  expect(encodeEntry(NAME, expired, SECRET)).toBeUndefined();
});

test("an entry that was made with another secret is none", () => {
  const record = recordIn("completed");
  expect(decodeEntry(NAME, record.id, encoded(record), `${SECRET}!`)).toBeUndefined();
});
