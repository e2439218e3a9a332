import { readArguments } from "../../core/commands/arguments.ts";
import { CommandError, type Host } from "../../core/commands/host.ts";
import { type Config, readConfig } from "../../core/config/config.ts";
import type { Check } from "../../core/feature.ts";
import { type Diagnosis, diagnoseAlone } from "./diagnose.ts";
import type { Finding } from "./findings.ts";

/** Exit codes, as those of monitoring plugins (https://nagios-plugins.org/doc/guidelines.html#AEN78). */
const EXIT = { fine: 0, warnings: 1, errors: 2, notRun: 3 } as const;

/**
 * Returns the command `doctor [--json]`: checks the database, Redis and the replicas with this environment's configuration, and
 * prints findings with what to do. Changes nothing. Exit code 0: no warning, 1: warnings, 2: errors, 3: it
 * could not run.
 *
 * @param checks those of other features.
 */
export function createDoctorCommand(checks: readonly Check[]): (host: Host) => Promise<void> {
  return async (host) => {
    const { json, config } = readInput(host);
    const diagnosis = await diagnoseAlone(config, checks);
    host.print(json ? JSON.stringify(diagnosis, null, 2) : describe(diagnosis));
    host.setExitCode(exitCodeOf(diagnosis));
  };
}

/** @throws CommandError with exit code 3. */
function readInput(host: Host): { readonly json: boolean; readonly config: Config } {
  try {
    const { json } = readArguments(host.args, { json: { type: "boolean", default: false } });
    return { json, config: readConfig(host.env) };
  } catch (cause) {
    throw new CommandError("doctor could not run.", { cause, exitCode: EXIT.notRun });
  }
}

function exitCodeOf({ findings }: Diagnosis): number {
  const severities = new Set(findings.map(({ severity }) => severity));
  if (severities.has("error")) return EXIT.errors;
  return severities.has("warning") ? EXIT.warnings : EXIT.fine;
}

function describe({ findings, passed, skipped }: Diagnosis): string {
  const lines = findings.map(describeFinding);
  if (passed.length > 0) lines.push(`ok       ${passed.join(", ")}`);
  if (skipped.length > 0) lines.push(`skipped  ${skipped.join(", ")}`);
  return lines.join("\n");
}

function describeFinding({ severity, id, summary, advice, runbook }: Finding): string {
  const indent = " ".repeat(9);
  return [`${severity.padEnd(9)}${id}`, summary, advice, runbook].join(`\n${indent}`);
}
