import { create } from "@bufbuild/protobuf";
import { withCurrentUrls } from "../../core/config/config.ts";
import type { Check, Feature } from "../../core/feature.ts";
import { DiagnoseResponseSchema, Finding_Severity } from "../../gen/onceward/v1/operator_pb.ts";
import { type OperatorRpcs, operatorRoutes } from "../administration/services.ts";
import { createDoctorCommand } from "./command.ts";
import { type Diagnosis, diagnose } from "./diagnose.ts";
import type { Severity } from "./findings.ts";

const SEVERITIES: Readonly<Record<Severity, Finding_Severity>> = {
  info: Finding_Severity.INFO,
  warning: Finding_Severity.WARNING,
  error: Finding_Severity.ERROR,
};

/**
 * Returns the RPC that examines the service's surroundings.
 *
 * @param diagnose examines the database, Redis and the replicas.
 */
function createDiagnoseHandlers(diagnose: () => Promise<Diagnosis>): OperatorRpcs<"diagnose"> {
  // Calls share an examination, so that their number costs nothing.
  let inFlight: Promise<Diagnosis> | undefined;

  return {
    async diagnose() {
      inFlight ??= diagnose().finally(() => {
        inFlight = undefined;
      });
      const { findings, passed, skipped } = await inFlight;
      return create(DiagnoseResponseSchema, {
        findings: findings.map((finding) => ({ ...finding, severity: SEVERITIES[finding.severity] })),
        passed: [...passed],
        skipped: [...skipped],
      });
    },
  };
}

/**
 * Returns the feature that examines the service's surroundings, by a command and an RPC.
 *
 * @param checks those of other features.
 */
export function createDoctor(checks: readonly Check[]): Feature {
  return {
    commands: [
      {
        name: "doctor",
        synopsis: "[--json]",
        summary: "check the database, Redis and the replicas, and show what to do",
        run: createDoctorCommand(checks),
      },
    ],
    compose({ config, tasks }) {
      const examine = () =>
        diagnose({ config: withCurrentUrls(config), runnerFor: () => tasks.administrationPool, checks });
      return { routes: operatorRoutes(createDiagnoseHandlers(examine)) };
    },
  };
}
