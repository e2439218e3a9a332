import { OperatorService } from "@onceward/gen/onceward/v1/operator_pb.ts";
import { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import { useSession } from "../../session/session.ts";

/** Returns the list of events of the session's role, newest first. That of operators has one filter more, which the other one skips. */
export function useEventList() {
  const { role } = useSession();
  const { method } = role === "OPERATOR" ? OperatorService : TenantAdminService;
  return method.listAuditEvents as typeof OperatorService.method.listAuditEvents;
}
