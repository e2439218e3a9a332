import { create } from "@bufbuild/protobuf";
import { DurationSchema } from "@bufbuild/protobuf/wkt";
import { expect, it } from "vitest";
import { clockWords } from "./replicas.tsx";

it("a clock is ahead or behind, or not measured yet", () => {
  const of = (seconds: number, nanos: number) => create(DurationSchema, { seconds: BigInt(seconds), nanos });
  expect(clockWords(undefined)).toBe("-");
  expect(clockWords(of(0, 0))).toBe("in step");
  expect(clockWords(of(0, 12_000_000))).toBe("12ms ahead");
  expect(clockWords(of(-2, -500_000_000))).toBe("2s behind");
});
