import { create, toBinary, toJson } from "@bufbuild/protobuf";
import { DurationSchema, TimestampSchema } from "@bufbuild/protobuf/wkt";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { StatusSchema } from "../gen/google/rpc/status_pb.ts";
import { toStatus } from "../transport/errors.ts";
import { Refusal, type Violation } from "./refusal.ts";
import { timestamp, Violations } from "./violations.ts";

/** What is found wrong by `check`. */
function found(check: (violations: Violations) => void): readonly Violation[] {
  const violations = new Violations();
  check(violations);
  try {
    violations.throwIfAny();
    return [];
  } catch (error) {
    if (error instanceof Refusal && error.reason === "INVALID_REQUEST") return error.violations;
    throw error;
  }
}

function duration(seconds: bigint, nanos: number) {
  return create(DurationSchema, { seconds, nanos });
}

describe("text", () => {
  const wrong = (value: string) => found((v) => v.text("key", value, { minBytes: 1, maxBytes: 6 })).length;

  test("is measured in bytes of UTF-8", () => {
    expect(["", "abcdef", "\u20ac\u20ac", "abcdefg", "\u20ac\u20aca"].map(wrong)).toEqual([1, 0, 0, 1, 1]);
  });

  test("has no control characters, of C0, C1 and DEL", () => {
    expect(["a\0", "a\n", "a\u001f", "a\u007f", "a\u0085", "a\u009f", "a\u00a0"].map(wrong)).toEqual([
      1, 1, 1, 1, 1, 1, 0,
    ]);
  });

  test("has no lone surrogates", () => {
    expect(["\ud800", "\udc00a", "\u{1f600}"].map(wrong)).toEqual([1, 1, 0]);
  });

  test("that is prose may have several lines, but no U+0000", () => {
    const prose = (value: string) => found((v) => v.prose("reason", value, { maxBytes: 6 })).length;
    expect(["", "a\nb", "a\0b", "\ud800", "abcdefg"].map(prose)).toEqual([0, 0, 1, 1, 1]);
  });
});

describe("a duration", () => {
  const bounds = { minMs: 0, maxMs: 60_000 };

  function read(seconds: bigint, nanos: number, within = bounds): number | undefined {
    let ms: number | undefined;
    const wrong = found((v) => {
      ms = v.durationMs("wait", duration(seconds, nanos), within);
    });
    expect(wrong.length).toBe(ms === undefined ? 1 : 0);
    return ms;
  }

  test("that is unset gives undefined and no violation", () => {
    const unset = found((v) => expect(v.durationMs("wait", undefined, bounds)).toBeUndefined());
    expect(unset).toEqual([]);
  });

  test("is rounded up to whole milliseconds", () => {
    expect(read(1n, 0)).toBe(1000);
    expect(read(0n, 1)).toBe(1);
    expect(read(1n, 500_000_001)).toBe(1501);
  });

  test("is within its bounds, both ends included", () => {
    expect(read(60n, 0)).toBe(60_000);
    expect(read(60n, 1)).toBeUndefined();
    expect(read(0n, 0)).toBe(0);
    expect(read(0n, 999_999_999, { minMs: 1000, maxMs: 2000 })).toBe(1000);
    expect(read(0n, 999_000_000, { minMs: 1000, maxMs: 2000 })).toBeUndefined();
  });

  test("is not negative, not even by a nanosecond", () => {
    expect(read(0n, -1)).toBeUndefined();
    expect(read(-1n, 0)).toBeUndefined();
    expect(read(-1n, -999_999_999)).toBeUndefined();
  });

  test("has nanos below a second, with the sign of its seconds", () => {
    expect(read(1n, 1_000_000_000)).toBeUndefined();
    expect(read(1n, -1)).toBeUndefined();
    expect(read(-1n, 1)).toBeUndefined();
  });

  test("of any size is rounded up to whole milliseconds, or refused", () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), fc.integer(), (seconds, nanos) => {
        const ms = read(seconds, nanos);
        if (ms !== undefined) expect(ms).toBeLessThanOrEqual(bounds.maxMs);
      }),
    );
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 59 }), fc.integer({ min: 0, max: 999_999_999 }), (s, nanos) => {
        const ms = read(BigInt(s), nanos) ?? Number.NaN;
        expect(Number.isInteger(ms)).toBe(true);
        expect(ms * 1e6).toBeGreaterThanOrEqual(s * 1e9 + nanos);
        expect(ms * 1e6).toBeLessThan(s * 1e9 + nanos + 1e6);
      }),
    );
  });
});

describe("the violations of a request", () => {
  test("are reported together, in order, with the field and the limit", () => {
    const violations = found((v) => {
      v.text("namespace", "", { minBytes: 1, maxBytes: 63 });
      v.bytes("checkpoint.state", new Uint8Array(3), { maxBytes: 2 });
      v.add("result", "is required");
    });
    expect(violations).toEqual([
      { field: "namespace", description: "is missing: it must be 1-63 bytes" },
      { field: "checkpoint.state", description: "must be at most 2 bytes, is 3" },
      { field: "result", description: "is required" },
    ]);
  });

  test("are reported once each, however often they are added", () => {
    const violations = found((v) => {
      for (let i = 0; i < 1000; i++) v.add("update_mask", "must name fields that can be set");
      v.add("name", "is required");
    });
    expect(violations.map(({ field }) => field)).toEqual(["update_mask", "name"]);
  });

  test("fit in the trailers that clients accept, however many they are", () => {
    const violations = found((v) => {
      for (let i = 0; i < 1000; i++) v.add("result.metadata", `must be at most 128 bytes, is ${1000 + i}`);
    });
    const refusal = new Refusal("INVALID_REQUEST", "", { violations });
    expect(violations.length).toBeGreaterThan(30);
    expect(toBinary(StatusSchema, toStatus(refusal, "r".repeat(64))).byteLength).toBeLessThan(4096);
  });

  test("never contain the values of the request", () => {
    const violations = found((v) => v.text("key", "secret\n", { maxBytes: 3 }));
    expect(JSON.stringify(violations)).not.toContain("secret");
  });
});

describe("a timestamp", () => {
  const isMoment = (seconds: bigint, nanos: number) =>
    found((v) => v.timestampMs("at", create(TimestampSchema, { seconds, nanos }))).length === 0;

  test("is within the range of google.protobuf.Timestamp", () => {
    expect(isMoment(-62_135_596_800n, 0)).toBe(true);
    expect(isMoment(-62_135_596_801n, 0)).toBe(false);
    expect(isMoment(253_402_300_799n, 999_999_999)).toBe(true);
    expect(isMoment(253_402_300_800n, 0)).toBe(false);
    expect(isMoment(0n, -1)).toBe(false);
    expect(isMoment(0n, 1_000_000_000)).toBe(false);
  });

  test("is still within the range when it is sent back", () => {
    const last = create(TimestampSchema, { seconds: 253_402_300_799n, nanos: 999_999_999 });
    const ms = new Violations().timestampMs("at", last) ?? Number.NaN;
    expect(toJson(TimestampSchema, timestamp(ms))).toBe("9999-12-31T23:59:59.999Z");
  });
});
