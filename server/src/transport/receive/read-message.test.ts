import type { IncomingHttpHeaders } from "node:http";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { IdempotencyService } from "../../gen/onceward/v1/idempotency_pb.ts";
import { messageLimits, parseTimeoutMs, TIMEOUT_HEADER, takeTimeoutHeader } from "./read-message.ts";

const TEN_MINUTES_MS = 600_000;

describe("a timeout", () => {
  test("is read in every unit of gRPC", () => {
    expect(["7S", "3M", "250m", "1500u", "2000000n", "0m"].map(parseTimeoutMs)).toEqual([
      7000, 180_000, 250, 1.5, 2, 0,
    ]);
  });

  test("is unknown where the caller said nothing", () => {
    expect(parseTimeoutMs(undefined)).toBeUndefined();
  });

  test("is clamped to ten minutes, however absurd", () => {
    expect(["1H", "99999999H", "9999999999m", "9999999999S"].map(parseTimeoutMs)).toEqual([
      TEN_MINUTES_MS,
      TEN_MINUTES_MS,
      TEN_MINUTES_MS,
      TEN_MINUTES_MS,
    ]);
  });

  test("that is malformed is refused", () => {
    for (const header of [
      "",
      "5",
      "S",
      "-1S",
      "1.5S",
      "1s",
      "1 S",
      "12345678901S",
      "1e3S",
      "5Sm",
      "\u0665S",
    ]) {
      expect(() => parseTimeoutMs(header)).toThrow(expect.objectContaining({ reason: "INVALID_REQUEST" }));
    }
  });

  test("of any format is a number that a timer takes", () => {
    const digits = fc.nat({ max: 2 ** 31 - 1 }).map(String);
    fc.assert(
      fc.property(digits, fc.constantFrom("H", "M", "S", "m", "u", "n"), (count, unit) => {
        const ms = parseTimeoutMs(`${count}${unit}`);
        expect(ms).toBeGreaterThanOrEqual(0);
        expect(ms).toBeLessThanOrEqual(TEN_MINUTES_MS);
      }),
    );
  });
});

describe("a protocol's timeout header", () => {
  function taken(headers: IncomingHttpHeaders): IncomingHttpHeaders {
    takeTimeoutHeader(headers);
    return headers;
  }

  test("is moved out of its library's sight", () => {
    expect(taken({ "grpc-timeout": "5S", te: "trailers" })).toEqual({
      [TIMEOUT_HEADER]: "5S",
      te: "trailers",
    });
    expect(taken({ "connect-timeout-ms": "1500" })).toEqual({ [TIMEOUT_HEADER]: "1500m" });
    expect(taken({ te: "trailers" })).toEqual({ te: "trailers" });
  });

  test("is read once it was moved", () => {
    expect(parseTimeoutMs(taken({ "connect-timeout-ms": "1500" })[TIMEOUT_HEADER] as string)).toBe(1500);
  });
});

test("a request has at most 4,096 fields in all, a batch 262,144", () => {
  const { claim, complete, batch } = IdempotencyService.method;
  expect([claim, complete, batch].map((method) => messageLimits(method).binary.maxFields)).toEqual([
    4096, 4096, 262_144,
  ]);
  expect([claim, complete, batch].map((method) => messageLimits(method).json.maxValues)).toEqual([
    4096, 4096, 16_384,
  ]);
});
