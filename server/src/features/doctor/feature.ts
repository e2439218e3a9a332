import { withCurrentUrls } from "../../core/config/config.ts";
import type { Check, Feature } from "../../core/feature.ts";
import { operatorRoutes } from "../administration/services.ts";
import { createDoctorCommand } from "./command.ts";
import { diagnose } from "./diagnose.ts";
import { createDiagnoseHandlers } from "./rpc/diagnose.ts";

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
        summary: "check the database, Redis and the replicas, and say what to do",
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
