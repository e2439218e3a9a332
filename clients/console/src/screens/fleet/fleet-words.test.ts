import { create } from "@bufbuild/protobuf";
import { DurationSchema } from "@bufbuild/protobuf/wkt";
import { expect, it } from "vitest";
import { clockWords, versionWords } from "./fleet-words.ts";

it("one version of all replicas is one sentence, several are counted, the most frequent first", () => {
  const on = (...versions: readonly string[]) => versions.map((version) => ({ version }));
  expect(versionWords([])).toBe("No replica is live");
  expect(versionWords(on("1.0"))).toBe("Version 1.0 on the only replica");
  expect(versionWords(on("1.0", "1.0"))).toBe("Version 1.0 on all 2 replicas");
  expect(versionWords(on("1.0", "1.1", "1.1"))).toBe(
    "2 versions: 1.1 on 2 replicas, 1.0 on 1 replica. Normal only during an upgrade",
  );
});

it("a clock is ahead or behind, or not measured yet", () => {
  const of = (seconds: number, nanos: number) => create(DurationSchema, { seconds: BigInt(seconds), nanos });
  expect(clockWords(undefined)).toBe("-");
  expect(clockWords(of(0, 0))).toBe("in step");
  expect(clockWords(of(0, 12_000_000))).toBe("12ms ahead");
  expect(clockWords(of(-2, -500_000_000))).toBe("2s behind");
});
