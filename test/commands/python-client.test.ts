import { execFile } from "node:child_process";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { loadFamilies } from "../../clients/conformance/src/case.ts";
import { pythonAdapters } from "../../clients/conformance/src/languages.ts";
import { runCases } from "../../clients/conformance/src/run-cases.ts";
import { ensureDatabase } from "../../server/dev/databases.ts";
import { startEmbeddedPostgres } from "../../server/dev/embedded/postgres.ts";
import { hasRabbitMq, RABBITMQ_DIR, startBroker } from "../support/brokers/rabbitmq-broker.ts";
import { installPythonClient } from "../support/packages/python.ts";
import { PYTEST_REPORT, refuseUnlisted, skippedByPytest } from "../support/packages/suite-skips.ts";
import { createWorkplaceWithCluster } from "../support/processes/command.ts";
import { makeDataDir } from "../support/processes/data-dir.ts";
import { pressCtrlC, startDev } from "../support/processes/dev.ts";
import { codeBlocks, firstBlock } from "../support/processes/readme.ts";

const run = promisify(execFile);
const README = "clients/python/README.md";
const PACKAGE = fileURLToPath(new URL("../../clients/python", import.meta.url));
const TIMEOUT_MS = 120_000;
/** All cases twice, many of which wait for a delay. */
const TABLE_TIMEOUT_MS = 600_000;

const environment = await installPythonClient();
const python = environment.kind === "ready" ? environment.python : "";
if (environment.kind === "missing") {
  process.stderr.write(`The Python client's package is skipped: ${environment.why}.\n`);
}

afterAll(async () => {
  if (environment.kind === "ready") await environment.remove();
});

test.runIf(python)("the programs of the README replay, from the installed wheel", async () => {
  const workplace = await createWorkplaceWithCluster();
  const dev = await startDev(workplace);
  const printed: string[] = [];
  for (const program of await codeBlocks(README, "python")) {
    const file = join(workplace.dir, "program.py");
    await writeFile(file, program.replace("127.0.0.1:50051", new URL(dev.grpcUrl).host));
    const env = { PATH: process.env.PATH, ONCEWARD_API_KEY: dev.callerKey };
    const args = program.includes("def test_") ? ["-m", "pytest", "-q", file] : [file];
    const { stdout } = await run(python, args, { cwd: workplace.dir, env, timeout: TIMEOUT_MS });
    printed.push(...stdout.trim().split("\n"));
  }
  const first = "{'charge': 'ch_1', 'delivery': 'first'}";
  expect(printed.slice(0, 4)).toEqual([first, first, "True", "{'charge': 'ch_3'}"]);
  expect(printed.slice(4, 6)).toEqual(["201 {'attempt': 1} None", "201 {'attempt': 1} true"]);
  expect(printed.slice(6, 8)).toEqual(["charged in attempt 1", "charged in attempt 1"]);
  expect(printed[8]).toMatch(/^refunded by the first process, [\w-]{6}$/);
  expect(printed[9]).toBe(printed[8]);
  expect(printed.at(-1)).toMatch(/^1 passed/);
  await pressCtrlC(dev);
});

test.runIf(python)("the tutorial's program charges once, and again after a crash", async () => {
  const workplace = await createWorkplaceWithCluster();
  const dev = await startDev(workplace);
  const file = join(workplace.dir, "charge.py");
  await writeFile(
    file,
    (await firstBlock("clients/tutorial.md", "python")).replace("http://localhost:50051", dev.grpcUrl),
  );
  const env = { PATH: process.env.PATH, ONCEWARD_API_KEY: dev.callerKey };
  const charge = async (...args: readonly string[]) =>
    (await run(python, [file, ...args], { env, timeout: TIMEOUT_MS })).stdout;
  expect(await charge("order-1")).toBe("charging order-1, attempt 1\nch_1\n");
  expect(await charge("order-1")).toBe("ch_1\n");
  await expect(charge("order-2", "crash")).rejects.toMatchObject({ stdout: "charging order-2, attempt 1\n" });
  expect(await charge("order-2")).toBe("charging order-2, attempt 2\nch_2\n");
  await pressCtrlC(dev);
});

/** What the one call of the first page speaks of: a provider that counts what it charged. */
const BEFORE_THE_CALL = `
import os
from onceward import Onceward
order = {"id": "order-first-page", "cents": 100}
charged = []
class provider:
    @staticmethod
    def charge(order, key):
        charged.append(key)
        return {"cents": order["cents"], "key": key}
`;

test.runIf(python)("the one call of the repository's first page charges once in two processes", async () => {
  const workplace = await createWorkplaceWithCluster();
  const dev = await startDev(workplace);
  const file = join(workplace.dir, "program.py");
  const call = (await firstBlock("README.md", "python")).replace("http://localhost:50051", dev.grpcUrl);
  await writeFile(file, `${BEFORE_THE_CALL}${call}print(charge, len(charged))\n`);
  const env = { PATH: process.env.PATH, ONCEWARD_API_KEY: dev.callerKey };
  const once = async () => (await run(python, [file], { env, timeout: TIMEOUT_MS })).stdout;
  const first = await once();
  expect(first).toMatch(/^\{'cents': 100, 'key': '[\w-]{43}'\} 1\n$/);
  expect(await once()).toBe(first.replace(/1\n$/, "0\n"));
  await pressCtrlC(dev);
});

test.runIf(python).each(pythonAdapters(python))(
  "the client of $language passes every case that its language has",
  { timeout: TABLE_TIMEOUT_MS },
  async (adapter) => {
    const cases = loadFamilies().flatMap((family) => family.cases);
    const verdicts = await runCases(adapter, cases);
    expect(verdicts.filter(({ differences }) => differences.length > 0)).toEqual([]);
  },
);

test.runIf(python)("the Python sources pass ruff and mypy --strict", { timeout: TIMEOUT_MS }, async () => {
  await run(python, ["-m", "ruff", "check", "."], { cwd: PACKAGE });
  await run(python, ["-m", "ruff", "format", "--check", "."], { cwd: PACKAGE });
  await run(python, ["-m", "mypy"], { cwd: PACKAGE });
});

test.runIf(python)(
  "the package's own tests pass, with FastAPI, Django, Redis, RabbitMQ and Postgres",
  { timeout: TABLE_TIMEOUT_MS },
  async () => {
    const data = await makeDataDir("ow-python-inbox-");
    const postgres = await startEmbeddedPostgres({ dataDir: join(data, "data"), settings: { fsync: "off" } });
    const rabbitMq = (await hasRabbitMq()) ? await startBroker(RABBITMQ_DIR) : undefined;
    try {
      await ensureDatabase(postgres.url("postgres"), "billing");
      const env = {
        ...process.env,
        ONCEWARD_TEST_DATABASE: postgres.url("billing"),
        ...(rabbitMq && { ONCEWARD_TEST_RABBITMQ: rabbitMq.url }),
      };
      const args = ["-m", "pytest", "-q", ...PYTEST_REPORT, "-p", "no:cacheprovider"];
      const { stdout } = await run(python, args, { cwd: PACKAGE, env, timeout: TABLE_TIMEOUT_MS });
      expect(stdout).toMatch(/^\d+ passed/m);
      refuseUnlisted(skippedByPytest(stdout));
    } finally {
      await rabbitMq?.stop();
      await postgres.stop();
      await rm(data, { recursive: true, force: true });
    }
  },
);
