import { execFile } from "node:child_process";
import { access, constants, readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { findProgram } from "../../deploy/release/commands.ts";
import { RABBITMQ_DIR } from "../support/brokers/rabbitmq-broker.ts";
import { CHILD_ENVIRONMENT } from "../support/processes/child-environment.ts";
import { createWorkplace, createWorkplaceWithCluster, type Workplace } from "../support/processes/command.ts";
import { pressCtrlC, startDev } from "../support/processes/dev.ts";
import { EXAMPLES, exampleFile } from "../tools/example.ts";

const run = promisify(execFile);
const ROOT = new URL("../../", import.meta.url);
const TIMEOUT_MS = 200_000;

// Temporal's packages are not installed here: test/optional/temporal.test.ts.
const examples = EXAMPLES.filter((name) => name !== "temporal/charge");

/** Their programs are rabbitmq-server and nats-server, which npm does not install. */
const WITH_BROKER: readonly string[] = ["nats", "rabbitmq"];
const hasNats = (await findProgram("nats-server")) !== undefined;
const hasRabbitMq = await access(`${RABBITMQ_DIR}/rabbitmq-server`, constants.X_OK).then(
  () => true,
  () => false,
);

/** Runs an example as npm does, but beside a service of the test's own. */
async function runExample(name: string, { dir, temporaryDir }: Workplace, address?: string) {
  const env = {
    ...CHILD_ENVIRONMENT,
    TMPDIR: temporaryDir,
    ...(address !== undefined && { ONCEWARD_ADDRESS: address }),
  };
  return await run(process.execPath, ["--conditions=@onceward/source", exampleFile(name)], {
    cwd: dir,
    env,
    timeout: TIMEOUT_MS,
  });
}

test("the README names every example's command, and every command exists", async () => {
  const readme = await readFile(new URL("clients/typescript/README.md", ROOT), "utf8");
  const named = [...readme.matchAll(/npm run example -- ([\w/]+)`\]\(examples\/\1\.ts\)/g)].map(
    ([, name]) => name,
  );
  expect(named.sort()).toEqual(EXAMPLES);
});

/** Runs examples beside one service, all at once. */
async function expectSuccess(chosen: typeof examples): Promise<void> {
  const workplace = await createWorkplaceWithCluster();
  const dev = await startDev(workplace);
  await Promise.all(
    chosen.map(async (name) => {
      const { stdout, stderr } = await runExample(name, workplace, dev.grpcUrl);
      expect({ name, stderr }).toEqual({ name, stderr: "" });
      expect(stdout, name).toMatch(/^proved: \d+ /m);
      expect(stdout, name).not.toContain("FAILED");
    }),
  );
  await pressCtrlC(dev);
}

test("with a running service, every example succeeds", async () => {
  await expectSuccess(examples.filter((name) => !WITH_BROKER.includes(name)));
});

test.runIf(hasNats && hasRabbitMq)(
  "the examples of RabbitMQ and NATS succeed with their broker",
  async () => {
    await expectSuccess(examples.filter((name) => WITH_BROKER.includes(name)));
  },
);

// Each example has its key from where this one looks for it, or it would not succeed above.
test("without a service, an example says how to start one", async () => {
  await expect(runExample("payments", await createWorkplace())).rejects.toMatchObject({
    code: 1,
    stderr: "No service is running: start one with `npm start`.\n",
  });
});
