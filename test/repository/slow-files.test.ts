import { existsSync } from "node:fs";
import { expect, test } from "vitest";
import { slowestFiles } from "../helpers/run-report.ts";
import { SLOW_FILES } from "../helpers/slow-first.ts";

test("a run names its slow files, the longest first", () => {
  const durations = [
    { file: "a.test.ts", ms: 10_600 },
    { file: "b.test.ts", ms: 9_900 },
    { file: "c.test.ts", ms: 31_200 },
  ];
  expect(slowestFiles(durations)).toEqual(["c.test.ts 31 s", "a.test.ts 11 s"]);
});

test("the files that run first exist", () => {
  for (const file of Object.keys(SLOW_FILES))
    expect(existsSync(new URL(`../../${file}`, import.meta.url)), file).toBe(true);
});
