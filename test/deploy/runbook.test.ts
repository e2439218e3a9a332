import { symlink } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { createTestDatabase } from "../support/database/database.ts";
import { readRepositoryFile } from "../support/deploy/expressions.ts";
import { createWorkplaceWithCluster } from "../support/processes/command.ts";
import { pressCtrlC, startDev } from "../support/processes/dev.ts";
import { followSteps, layOutClone, missingLine, stepsOf } from "../support/processes/follow-readme.ts";

/** About forty commands, some of which start npm and Node. */
const TIMEOUT_MS = 240_000;

test(
  "every command of the runbook and of the page on service levels works beside npm start",
  async () => {
    const pages = ["deploy/runbook.md", "deploy/observability.md"];
    const steps = (await Promise.all(pages.map((page) => stepsOf(page)))).flat();
    expect(steps.length).toBeGreaterThan(20);
    const workplace = await createWorkplaceWithCluster();
    const dev = await startDev(workplace);
    // Metrics with a label exist from their first event on.
    await dev.call();
    await layOutClone(workplace);
    await symlink(fileURLToPath(new URL("../../deploy", import.meta.url)), join(workplace.dir, "deploy"));
    const onFreePorts = (command: string) =>
      command
        .replaceAll("http://localhost:50051", dev.grpcUrl)
        .replaceAll("http://localhost:9090", dev.managementUrl);

    const followed = await followSteps(
      workplace,
      steps.map(({ command }) => onFreePorts(command)),
    );
    for (const [index, { command, printed }] of steps.entries()) {
      const { exit, output } = followed[index] ?? { exit: undefined, output: "" };
      expect({ command, exit, output }).toEqual({ command, exit: 0, output });
      expect({ command, output, missing: missingLine(printed, output) }).toEqual({
        command,
        output,
        missing: undefined,
      });
    }
    await pressCtrlC(dev);
  },
  TIMEOUT_MS,
);

test("every query of the runbook runs on the schema", async () => {
  const blocks = [...readRepositoryFile("deploy/runbook.md").matchAll(/^```sql\n([\s\S]*?)^```$/gm)];
  const queries = blocks
    .flatMap(([, block = ""]) => block.split(/;\n/))
    // Queries of Citus need its extension, which the packaged Postgres does not have.
    .filter((text) => text.trim() !== "" && !/\b(citus_|pg_dist_|run_command_on_workers)/.test(text));
  expect(queries.length).toBeGreaterThan(0);
  const database = await createTestDatabase();
  try {
    for (const query of queries) await database.query(query);
  } finally {
    await database.drop();
  }
});
