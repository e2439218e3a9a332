import { create } from "@bufbuild/protobuf";
import type { Handlers } from "../../calls/call.ts";
import {
  GetServerInfoResponseSchema,
  type OperatorService,
  OperatorServiceListAuditEventsResponseSchema,
} from "../../gen/onceward/v1/operator_pb.ts";
import { Violations } from "../../messages/violations.ts";
import { readServerFacts } from "../../store/server-facts.ts";
import { VERSION } from "../../version.ts";
import { listAuditEvents } from "../audit-lists.ts";
import type { OperatorOptions } from "./options.ts";
import { checkName } from "./tenant-requests.ts";

/** Returns the RPCs for the state of the replica and for audit events. */
export function createServerInfoHandlers({
  pool,
  pageTokens,
  redactedConfig,
  degradedReasons,
}: OperatorOptions): Pick<Handlers<typeof OperatorService>, "listAuditEvents" | "getServerInfo"> {
  return {
    async listAuditEvents(request) {
      const violations = new Violations();
      if (request.tenant !== "") checkName("tenant", request.tenant, violations);
      const tenant = request.tenant || undefined;
      const page = await listAuditEvents({ runner: pool, pageTokens }, tenant, request, violations);
      return create(OperatorServiceListAuditEventsResponseSchema, page);
    },

    async getServerInfo() {
      const { schemaVersion, replicas } = await readServerFacts(pool);
      return create(GetServerInfoResponseSchema, {
        version: VERSION,
        schemaVersion,
        config: { ...redactedConfig },
        degraded: [...degradedReasons()],
        replicas,
      });
    },
  };
}
