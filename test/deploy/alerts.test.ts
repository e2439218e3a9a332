import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { parse, stringify } from "yaml";
import { ALERTS, readRepositoryFile } from "../support/deploy/expressions.ts";
import { describeWithPrograms, runProgram } from "../support/deploy/programs.ts";
import { newDir } from "../support/new-dir.ts";

/** Tests for `promtool test rules`. */
const FILES = ["test/deploy/alerts.yml", "test/deploy/burn-rates.yml", "test/deploy/slow-burn-rates.yml"];

const RULES = fileURLToPath(new URL("../../deploy/prometheus/rules.yml", import.meta.url));
const OTHER_JOB = "onceward-eu";

interface ExpectedAlert {
  readonly exp_labels: Readonly<Record<string, string>>;
  readonly exp_annotations: Readonly<Record<string, string>>;
}

interface AlertTest {
  readonly alertname: string;
  readonly exp_alerts: readonly ExpectedAlert[];
}

interface Scenario {
  readonly input_series: readonly { readonly series: string; readonly values: string }[];
  readonly alert_rule_test: readonly AlertTest[];
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
  test.each(FILES)(
    "finds that the alerts of two installations, each in the states of %s, do what it expects",
    async (file) => {
      const content = parse(readRepositoryFile(file));
      const doubled = { ...content, rule_files: [RULES], tests: content.tests.map(doubledScenario) };
      const dir = await newDir();
      const path = join(dir, "doubled.yml");
      await writeFile(path, stringify(doubled, { aliasDuplicateObjects: false }));
      const { exit, output } = await runProgram("promtool", "test", "rules", path);
      expect({ exit, output }).toEqual({ exit: 0, output });
    },
  );
});

/** Adds an installation that is in the same state as `onceward`, and expects its alerts beside those of `onceward`. */
function doubledScenario(scenario: Scenario): Scenario {
  const renamed = (text: string) => text.replace(/^onceward:/, `${OTHER_JOB}:`);
  const others = scenario.input_series
    .filter(({ series }) => series.includes('job="onceward"'))
    .map((each) => ({ ...each, series: each.series.replace('job="onceward"', `job="${OTHER_JOB}"`) }));
  return {
    ...scenario,
    input_series: [...scenario.input_series, ...others],
    alert_rule_test: scenario.alert_rule_test.map((each) => ({
      ...each,
      exp_alerts: each.exp_alerts.flatMap((alert) => {
        if (alert.exp_labels.job !== "onceward") return [alert];
        const summary = renamed(alert.exp_annotations.summary ?? "");
        const other: ExpectedAlert = {
          exp_labels: { ...alert.exp_labels, job: OTHER_JOB },
          exp_annotations: { ...alert.exp_annotations, summary },
        };
        return [alert, other];
      }),
    })),
  };
}
