import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeAll, describe, expect, test } from "vitest";
import { usePackedClient } from "../support/packages/packed-client.ts";

const run = promisify(execFile);
const INSTALL_TIMEOUT_MS = 300_000;
const RUN_TIMEOUT_MS = 80_000;
/** The runners that users have, with ts-jest as NestJS sets it up; 200 MB. */
const PACKAGES = [
  "jest@30",
  "ts-jest@29",
  "vitest@3",
  "tsx@4",
  "ts-node@10",
  "typescript@5.9",
  "bun@1",
  "@types/node@22",
];

const hasPackages = await run("npm", ["view", "jest@30", "version"], { timeout: 30_000 }).then(
  () => true,
  () => false,
);
if (!hasPackages) process.stderr.write("The tests of test runners are skipped: npm has no jest.\n");

const packed = usePackedClient();

/** Runs an operation twice, and returns how often its function ran. */
const COUNT = `
async function countEffects(): Promise<number> {
  const testing = createTestingOnceward();
  let effects = 0;
  const options = { namespace: "charges", key: "order-1", fingerprint: { cents: 100 } };
  for (let delivery = 0; delivery < 2; delivery++) await testing.onceward.run(options, () => ++effects);
  await testing.onceward.close();
  return effects;
}
`;
const IMPORT = 'import { createTestingOnceward } from "@onceward/client/testing";\n';
const IN_JAVASCRIPT = COUNT.replace(": Promise<number>", "");
const PROGRAM = `${IMPORT}${COUNT}\ncountEffects().then((effects) => console.log("effects: " + effects));\n`;
const JEST_TEST = `${COUNT}\ntest("runs once", async () => expect(await countEffects()).toBe(1));\n`;

const FILES: Readonly<Record<string, string>> = {
  "tsconfig.json": JSON.stringify({
    compilerOptions: {
      module: "node16",
      target: "es2022",
      strict: true,
      types: ["node"],
      skipLibCheck: true,
    },
  }),
  "jest.config.js": `module.exports = {
  testMatch: ["**/*.jest.*"],
  transform: { "^.+\\\\.ts$": ["ts-jest", { diagnostics: { ignoreCodes: [151002, 2304, 2582, 2593] } }] },
};\n`,
  "plain.jest.js": `const { createTestingOnceward } = require("@onceward/client/testing");\n${JEST_TEST.replace(": Promise<number>", "")}`,
  "typed.jest.ts": `${IMPORT}${JEST_TEST}`,
  "of.node.test.mjs": `import test from "node:test";\nimport assert from "node:assert";\n${IMPORT}${IN_JAVASCRIPT}
test("runs once", async () => assert.equal(await countEffects(), 1));\n`,
  "of.vitest.test.ts": `import { expect, test } from "vitest";\n${IMPORT}${JEST_TEST}`,
  "program.ts": PROGRAM,
};

describe.runIf(hasPackages)("the packed client", () => {
  let project: string;
  beforeAll(async () => {
    ({ project } = packed());
    for (const [name, text] of Object.entries(FILES)) await writeFile(join(project, name), text);
    // A project of CommonJS, as Jest and ts-node take it by default.
    const { type: _, ...manifest } = JSON.parse(await readFile(join(project, "package.json"), "utf8"));
    await writeFile(join(project, "package.json"), JSON.stringify(manifest));
    const flags = ["--prefer-offline", "--no-audit", "--no-fund", "--loglevel=error"];
    await run("npm", ["install", ...flags, ...PACKAGES], { cwd: project, timeout: INSTALL_TIMEOUT_MS });
  }, INSTALL_TIMEOUT_MS);

  test.each<[runner: string, command: readonly string[], printed: RegExp]>([
    ["Jest, by require", ["jest", "plain"], /1 passed/],
    ["Jest with ts-jest", ["jest", "typed"], /1 passed/],
    ["node:test", ["node", "--test", "of.node.test.mjs"], /pass 1/],
    ["Vitest", ["vitest", "run", "of.vitest.test.ts"], /1 passed/],
    ["tsx", ["tsx", "program.ts"], /^effects: 1$/m],
    ["ts-node", ["ts-node", "program.ts"], /^effects: 1$/m],
    ["Bun", ["bun", "program.ts"], /^effects: 1$/m],
  ])("loads under %s", async (_, [program = "", ...args], printed) => {
    const path = `${join(project, "node_modules/.bin")}:${process.env.PATH}`;
    const options = {
      cwd: project,
      timeout: RUN_TIMEOUT_MS,
      env: { ...process.env, PATH: path, CI: "", NODE_OPTIONS: "" },
    };
    const { stdout, stderr } = await run(program, args, options);
    expect(stdout + stderr).toMatch(printed);
  });
});
