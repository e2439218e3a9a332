import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { describeWithPrograms, runProgram } from "../support/deploy/programs.ts";

const DEPLOY = fileURLToPath(new URL("../../deploy/", import.meta.url));

describeWithPrograms(["promtool"], "Prometheus", () => {
  test("accepts the configuration and the rules that it names", async () => {
    const config = join(DEPLOY, "prometheus/prometheus.yml");
    expect(await runProgram("promtool", "check", "config", config)).toMatchObject({ exit: 0 });
  });
});

describeWithPrograms(["amtool"], "Alertmanager", () => {
  test("accepts the configuration", async () => {
    const config = join(DEPLOY, "alertmanager/alertmanager.yml");
    const { exit, output } = await runProgram("amtool", "check-config", config);
    expect({ exit, output }).toMatchObject({ exit: 0, output: expect.stringContaining("2 receivers") });
  });
});
