import { Record_State, Result_Kind } from "@onceward/gen/onceward/v1/record_pb.ts";
import { describe, expect, it } from "vitest";
import {
  checkResult,
  EMPTY_RESULT,
  isOfHttpGuard,
  isResolvable,
  resolutionMessage,
  resolutionsOf,
} from "./resolution.ts";

describe("A resolution", () => {
  it("sends a result byte for byte, and only with a completion", () => {
    const draft = { ...EMPTY_RESULT, outcome: "failure", contentType: " text/plain ", text: " é\n" } as const;
    expect(resolutionMessage("release", draft)).toEqual({ case: "release", value: {} });
    expect(resolutionMessage("complete", draft)).toEqual({
      case: "complete",
      value: {
        result: {
          kind: Result_Kind.FAILURE,
          payload: new Uint8Array([0x20, 0xc3, 0xa9, 0x0a]),
          contentType: "text/plain",
        },
      },
    });
  });

  it("is not sent with a result that its media type contradicts, or that is too large", () => {
    const draft = { ...EMPTY_RESULT, text: "{paid}" };
    expect(checkResult(draft).text).toContain("JSON");
    expect(isResolvable("complete", draft)).toBe(false);
    expect(isResolvable("release", draft)).toBe(true);
    expect(isResolvable("complete", { ...draft, contentType: "text/plain" })).toBe(true);
    expect(isResolvable("complete", { ...draft, contentType: "application/problem+json" })).toBe(false);
    expect(isResolvable("complete", EMPTY_RESULT)).toBe(true);
    expect(checkResult({ ...draft, contentType: "", text: "é".repeat(600_000) }).text).toContain("1200000");
    expect(checkResult({ ...draft, contentType: "x".repeat(256) }).contentType).toContain("255");
  });

  it("stores the status that an HTTP endpoint replays, of a success alone", () => {
    expect(["POST:/charges:key:7", "order-7", "POST:7"].map((key) => isOfHttpGuard({ key }))).toEqual([
      ...[true, false, false],
    ]);
    const draft = { ...EMPTY_RESULT, httpStatus: " 201 " };
    expect(resolutionMessage("complete", draft)).toMatchObject({
      value: { result: { metadata: { "http-status": "201" } } },
    });
    const failure = resolutionMessage("complete", { ...draft, outcome: "failure" });
    expect(failure).not.toHaveProperty("value.result.metadata");
    expect(resolutionMessage("complete", EMPTY_RESULT)).not.toHaveProperty("value.result.metadata");
    expect(isResolvable("complete", draft)).toBe(true);
    expect(isResolvable("complete", { ...draft, httpStatus: "199" })).toBe(false);
    expect(isResolvable("complete", { ...draft, httpStatus: "199", outcome: "failure" })).toBe(true);
  });

  it("of a completed record can only be to forget it", () => {
    expect(resolutionsOf({ state: Record_State.COMPLETED })).toEqual(["forget"]);
    expect(resolutionsOf({ state: Record_State.AMBIGUOUS })).toEqual(["complete", "release", "forget"]);
  });
});
