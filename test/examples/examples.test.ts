import { execFile } from "node:child_process";
import { access, constants, readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { RABBITMQ_DIR } from "../helpers/brokers/rabbitmq-broker.ts";
import { createWorkplace, type Workplace } from "../helpers/processes/command.ts";
import { pressCtrlC, startDev } from "../helpers/processes/dev.ts";

const run = promisify(execFile);
const ROOT = new URL("../../", import.meta.url);
const PATH = process.env.PATH;
const TIMEOUT_MS = 50_000;

/** The programs of `npm run example:…`, as package.json has them. */
const { scripts } = JSON.parse(await readFile(new URL("package.json", ROOT), "utf8")) as {
  scripts: Record<string, string>;
};
const examples = Object.entries(scripts).filter(([name]) => name.startsWith("example:"));

const hasRabbitMq = await access(`${RABBITMQ_DIR}/rabbitmq-server`, constants.X_OK).then(
  () => true,
  () => false,
);

/** Runs an example as npm does, but beside a service of the test's own. */
async function runExample(script: string, { dir, temporaryDir }: Workplace, address?: string) {
  const args = script.split(" ").slice(1);
  const program = fileURLToPath(new URL(args.pop() ?? "", ROOT));
  const env = { PATH, TMPDIR: temporaryDir, ...(address !== undefined && { ONCEWARD_ADDRESS: address }) };
  return await run(process.execPath, [...args, program], { cwd: dir, env, timeout: TIMEOUT_MS });
}

test("the README names every example's command, and every command exists", async () => {
  const readme = await readFile(new URL("clients/typescript/README.md", ROOT), "utf8");
  const named = [...readme.matchAll(/npm run (example:\w+)`\]\(examples\/\w+\.ts\)/g)].map(
    ([, name]) => name,
  );
  expect(named.sort()).toEqual(examples.map(([name]) => name).sort());
});

if (!hasRabbitMq) {
  process.stderr.write("The RabbitMQ example is left out: install rabbitmq-server to run it.\n");
}

for (const [name, script] of examples) {
  test.runIf(hasRabbitMq || name !== "example:rabbitmq")(`npm run ${name} proves what it says`, async () => {
    const workplace = await createWorkplace();
    const dev = await startDev(workplace);
    const { stdout, stderr } = await runExample(script, workplace, dev.grpcUrl);
    expect(stderr).toBe("");
    expect(stdout).toMatch(/^proved: \d+ /m);
    expect(stdout).not.toContain("FAILED");
    await pressCtrlC(dev);
  });
}

test.each(examples)("without a service, npm run %s says how to start one", async (_, script) => {
  const workplace = await createWorkplace();
  await expect(runExample(script, workplace)).rejects.toMatchObject({
    code: 1,
    stderr: "No service is running: start one with `npm start`.\n",
  });
});
