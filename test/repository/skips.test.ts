import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { SKIPS } from "../skips.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const VITEST = join(ROOT, "node_modules/vitest/vitest.mjs");

/** Runs a test file as a project of its own, with the report of this repository's runs. */
async function runTests(source: string, isCi: boolean) {
  await mkdir(join(ROOT, "node_modules/.cache"), { recursive: true });
  const dir = await mkdtemp(join(ROOT, "node_modules/.cache/skips-"));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  await writeFile(join(dir, "a.test.ts"), `import { expect, test } from "vitest";\n${source}`);
  const report = `import { RunReport } from ${JSON.stringify(join(ROOT, "test/helpers/run-report.ts"))};`;
  const config = `{ test: { include: ["a.test.ts"], reporters: [new RunReport(${isCi})] } }`;
  await writeFile(join(dir, "vitest.config.ts"), `${report}\nexport default ${config};\n`);
  const { status, stderr } = spawnSync(process.execPath, [VITEST, "run", "--root", dir], {
    encoding: "utf8",
  });
  return { status, stderr };
}

test("in continuous integration, a skipped test that is not listed fails the run, which names it", async () => {
  const skipped = 'test("runs", () => {}); test.runIf(false)("needs a program", () => {});';
  const { status, stderr } = await runTests(skipped, true);
  expect(status).toBe(1);
  expect(stderr).toContain("Skipped: a.test.ts > needs a program");
  expect(await runTests(skipped, false)).toMatchObject({ status: 0 });
  expect(await runTests('test("runs", () => {});', true)).toMatchObject({ status: 0 });
});

test("a failed run prints the seed of its random values", async () => {
  const { status, stderr } = await runTests('test("fails", () => expect(1).toBe(2));', false);
  expect(status).toBe(1);
  expect(stderr).toContain(`ONCEWARD_TEST_SEED=${process.env.ONCEWARD_TEST_SEED}`);
});

test("every skip that is allowed names a test file, and says why", () => {
  for (const { file, reason } of SKIPS) {
    expect(existsSync(join(ROOT, file)), file).toBe(true);
    expect(reason).not.toBe("");
  }
});
