import { expect, test } from "vitest";
import { createWorkplaceWithCluster } from "../support/processes/command.ts";
import { pressCtrlC, startDev } from "../support/processes/dev.ts";
import { followSteps, layOutClone, missingLine, stepsOf } from "../support/processes/follow-readme.ts";

/** About fifty commands, each of which starts npm and Node: a minute on an idle machine. */
const TIMEOUT_MS = 480_000;

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

    const followed = await followSteps(
      workplace,
      steps.map(({ command }) => onFreePorts(command)),
    );
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
