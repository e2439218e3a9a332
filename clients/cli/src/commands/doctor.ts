import type { Operator } from "@onceward/client/admin";
import { DiagnoseResponseSchema, type Finding, Finding_Severity } from "@onceward/client/proto";
import type { Command } from "commander";
import { EXIT, type ExitCode, Outcome } from "../failure.ts";
import { enumName } from "../output.ts";
import type { WithSession } from "../session.ts";
import { visible } from "../terminal.ts";
import { command, withAllCells } from "./group.ts";

/** Returns `operator doctor`. It exits with 5 or 6 if it found warnings or errors. */
export function doctorCommand(asOperator: WithSession<Operator>): Command {
  return withAllCells(
    command(
      "doctor",
      "Checks the database, Redis and the replicas, and says what to do. Exits with 5 on warnings, 6 on errors.",
      "operator doctor",
      "operator doctor --all-cells --json",
    ),
  ).action(
    asOperator(async ({ client, call, output }, _options: object) => {
      const diagnosis = await client.diagnose({}, call);
      const { findings, passed, skipped } = diagnosis;
      output.message(DiagnoseResponseSchema, diagnosis, () =>
        [...findings.map(renderFinding), renderNames("ok", passed), renderNames("skipped", skipped)].join(""),
      );
      const exitCode = exitCodeOf(findings);
      if (exitCode !== EXIT.ok) throw new Outcome(exitCode, "");
    }),
  );
}

function exitCodeOf(findings: readonly Finding[]): ExitCode {
  const severities = new Set(findings.map(({ severity }) => severity));
  if (severities.has(Finding_Severity.ERROR)) return EXIT.errors;
  return severities.has(Finding_Severity.WARNING) ? EXIT.warnings : EXIT.ok;
}

/** The width of the column with severities. */
const WIDTH = 9;

function renderFinding({ severity, id, summary, advice, runbook }: Finding): string {
  const [first = "", ...rest] = [id, summary, advice, runbook].map(visible);
  const name = enumName(Finding_Severity, severity);
  return [`${name.padEnd(WIDTH)}${first}`, ...rest.map((line) => " ".repeat(WIDTH) + line)]
    .map((line) => `${line}\n`)
    .join("");
}

function renderNames(heading: string, names: readonly string[]): string {
  return names.length === 0 ? "" : `${heading.padEnd(WIDTH)}${visible(names.join(", "))}\n`;
}
