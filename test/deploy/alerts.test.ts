import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { ALERTS, readRepositoryFile } from "../helpers/deploy/expressions.ts";
import { describeWithPrograms, runProgram } from "../helpers/deploy/programs.ts";

/** Tests for `promtool test rules`. */
const FILES = ["test/deploy/alerts.yml", "test/deploy/burn-rates.yml", "test/deploy/slow-burn-rates.yml"];

interface AlertTest {
  readonly alertname: string;
  readonly exp_alerts: readonly unknown[];
}

const TESTS = FILES.flatMap((file): readonly AlertTest[] =>
  parse(readRepositoryFile(file)).tests.flatMap(
    ({ alert_rule_test }: { alert_rule_test: readonly AlertTest[] }) => alert_rule_test,
  ),
);

test.each(ALERTS)("a test expects that $alert fires, and one that it stays silent", ({ alert }) => {
  const expected = TESTS.filter(({ alertname }) => alertname === alert).map(
    ({ exp_alerts }) => exp_alerts.length > 0,
  );
  expect(new Set(expected)).toEqual(new Set([true, false]));
});

describeWithPrograms(["promtool"], "promtool", () => {
  test.each(FILES)("finds that the alerts do what %s expects", async (file) => {
    const path = fileURLToPath(new URL(`../../${file}`, import.meta.url));
    expect(await runProgram("promtool", "test", "rules", path)).toMatchObject({ exit: 0 });
  });
});
