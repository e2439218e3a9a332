import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { SKIPS } from "../skips.ts";
import { refuseUnlisted, skippedByGo, skippedByPytest } from "../support/packages/suite-skips.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const VITEST = join(ROOT, "node_modules/vitest/vitest.mjs");

/** Runs a test file as a project of its own, with the report of this repository's runs. */
async function runTests(source: string, isCi: boolean) {
  await mkdir(join(ROOT, "node_modules/.cache"), { recursive: true });
  const dir = await mkdtemp(join(ROOT, "node_modules/.cache/skips-"));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  await writeFile(join(dir, "a.test.ts"), `import { expect, test } from "vitest";\n${source}`);
  const report = `import { RunReport } from ${JSON.stringify(join(ROOT, "test/support/run-report.ts"))};`;
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

/** What pytest 9 prints. */
const PYTEST = `
=========================== short test summary info ============================
SKIPPED tests/integrations/test_inbox.py - Skipped: ONCEWARD_TEST_DATABASE names no Postgres
SKIPPED tests/integrations/test_examples.py::test_an_example_has_one_effect[mails] - Skipped: there is no redis-server
`;

test("skipped tests of the suites in Python and Go fail the run, too", () => {
  const python = skippedByPytest(`${PYTEST}149 passed, 2 skipped in 21.03s\n`);
  expect(python).toEqual([
    { file: "clients/python/tests/integrations/test_inbox.py", name: "tests/integrations/test_inbox.py" },
    {
      file: "clients/python/tests/integrations/test_examples.py",
      name: "test_an_example_has_one_effect[mails]",
    },
  ]);
  for (const summary of [
    "149 passed, 3 skipped in 2s",
    "9 passed, 2 skipped, 1 deselected in 2s",
    "2 skipped in 2s",
  ])
    expect(() => skippedByPytest(`${PYTEST}${summary}\n`)).toThrow("pytest named 2 skipped tests");
  const inbox = "github.com/onceward/onceward/clients/go/inboxtest";
  const go = [
    { Action: "output", Package: inbox, Test: "TestOnce", Output: "--- SKIP: TestOnce" },
    { Action: "skip", Package: inbox, Test: "TestOnce", Elapsed: 0 },
    { Action: "skip", Package: `${inbox}/empty`, Elapsed: 0 },
  ];
  const skippedGo = skippedByGo(go.map((event) => JSON.stringify(event)).join("\n"));
  expect(skippedGo).toEqual([{ file: "clients/go/inboxtest", name: "TestOnce" }]);
  for (const skipped of [...python, ...skippedGo]) {
    expect(() => refuseUnlisted([skipped], true)).toThrow(`${skipped.file} > ${skipped.name}`);
    expect(() => refuseUnlisted([skipped], false)).not.toThrow();
  }
  const listed = { file: "test/deploy/image.test.ts", name: "starts" };
  expect(() => refuseUnlisted([listed], true)).not.toThrow();
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
