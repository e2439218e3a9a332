import { create } from "@bufbuild/protobuf";
import { readArguments } from "../commands/arguments.ts";
import { CommandError, type Host } from "../commands/host.ts";
import { type Config, readConfig, withCurrentUrls } from "../config/config.ts";
import type { CoreParts } from "../core-parts.ts";
import { DiagnoseResponseSchema, Finding_Severity, OperatorService } from "../gen/onceward/v1/operator_pb.ts";
import { type Route, routesOf } from "../transport/route.ts";
import { type Diagnosis, diagnose, diagnoseAlone } from "./diagnose.ts";
import type { Finding, Severity } from "./findings.ts";

const SEVERITIES: Readonly<Record<Severity, Finding_Severity>> = {
  info: Finding_Severity.INFO,
  warning: Finding_Severity.WARNING,
  error: Finding_Severity.ERROR,
};

/** Returns the RPC that examines the service's surroundings. */
export function doctorRoutes({ config, tasks }: Pick<CoreParts, "config" | "tasks">): readonly Route[] {
  // Calls share an examination, so that their number costs nothing.
  let inFlight: Promise<Diagnosis> | undefined;
  const runner = () => tasks.administrationPool;
  return routesOf(OperatorService, {
    async diagnose() {
      inFlight ??= diagnose(withCurrentUrls(config), runner).finally(() => {
        inFlight = undefined;
      });
      const { findings, passed, skipped } = await inFlight;
      return create(DiagnoseResponseSchema, {
        findings: findings.map((finding) => ({ ...finding, severity: SEVERITIES[finding.severity] })),
        passed: [...passed],
        skipped: [...skipped],
      });
    },
  });
}

/** Exit codes, as those of monitoring plugins (https://nagios-plugins.org/doc/guidelines.html#AEN78). */
const EXIT = { fine: 0, warnings: 1, errors: 2, notRun: 3 } as const;

/**
 * `doctor [--json]`: checks the database, Redis and the replicas with this environment's configuration, and prints findings with
 * what to do. Changes nothing. Exit code 0: no warning, 1: warnings, 2: errors, 3: it could not run.
 */
export async function doctor(host: Host): Promise<void> {
  const { json, config } = readInput(host);
  const diagnosis = await diagnoseAlone(config);
  host.print(json ? JSON.stringify(diagnosis, null, 2) : describe(diagnosis));
  host.setExitCode(exitCodeOf(diagnosis));
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
