import { expect, test } from "vitest";
import root from "../../package.json" with { type: "json" };
import { createWorkplaceWithCluster } from "../support/processes/command.ts";
import { pressCtrlC, startDev } from "../support/processes/dev.ts";
import { followSteps, layOutClone, missingLine, stepsOf } from "../support/processes/follow-readme.ts";

/** About fifty commands, each of which starts Node. */
const TIMEOUT_MS = 480_000;
/** What the tours' function runs: npm takes longer to start than the command that it finds. */
const BY_NPM = "npm run --silent onceward --";

test(
  "every command in the tours of tenant admins and operators prints what the page shows",
  async () => {
    const pages = ["clients/cli/tenant-admins.md", "clients/cli/operators.md"];
    const steps = (await Promise.all(pages.map((page) => stepsOf(page)))).flat();
    expect(steps.length).toBeGreaterThan(20);
    const workplace = await createWorkplaceWithCluster();
    const dev = await startDev(workplace);
    await layOutClone(workplace);
    const [, httpUrl = ""] = await dev.untilPrinted(/JSON +(http:\S+)/);
    const onFreePorts = (command: string) =>
      command.replaceAll("http://localhost:50051", dev.grpcUrl).replaceAll("http://localhost:8080", httpUrl);

    const [, ...followed] = await followSteps(workplace, [
      `${BY_NPM} --version`,
      ...steps.map(({ command }) => onFreePorts(command.replace(BY_NPM, root.scripts.onceward))),
    ]);
    for (const [index, { command, printed }] of steps.entries()) {
      const { exit, output } = followed[index] ?? { exit: undefined, output: "" };
      expect({ command, exit, output }).toMatchObject({ exit: 0 });
      const missing = missingLine(printed, output);
      if (missing !== undefined) expect.fail(`${command}\ndoes not print\n${missing}\nbut\n${output}`);
    }
    await pressCtrlC(dev);
  },
  TIMEOUT_MS,
);
