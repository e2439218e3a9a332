import type { Admission } from "../../admission/admission.ts";
import type { ChangeListener } from "../../auth/authenticate.ts";
import type { Answer, Call, Handlers } from "../../calls/call.ts";
import type { TenantAdminService } from "../../gen/onceward/v1/tenant_admin_pb.ts";
import type { AdministrationPool } from "../../store/batching/administration-pool.ts";
import type { RecordStore } from "../../store/records/record-store.ts";
import type { PageTokens } from "../pages.ts";
import { createApiKeyHandlers } from "./api-keys.ts";
import { createHistoryHandlers } from "./history.ts";
import { createNamespaceHandlers } from "./namespaces.ts";
import { createRecordJobHandlers } from "./record-jobs.ts";
import { createRecordHandlers } from "./records.ts";
import { createTenantHandlers } from "./tenant.ts";
import { createUsageHandlers } from "./usage.ts";

/** The parts that TenantAdminService needs. */
export interface TenantAdminOptions {
  readonly pool: AdministrationPool;
  readonly admission: Pick<Admission, "admitOperation" | "admitNamespace" | "admitRecordJob">;
  readonly records: Pick<RecordStore, "read">;
  readonly pageTokens: PageTokens;
  /** Receives every change, after its commit. */
  readonly changes: ChangeListener;
  /** Keys the digests of API keys, and the hashes of records' keys in audit events. */
  readonly pepper: string;
  /** Wakes the calls that wait for a record, on every replica. */
  readonly onSettled: (name: string) => void;
}

/** Returns TenantAdminService. `tenant_admin.proto` describes each RPC. */
export function createTenantAdminService(options: TenantAdminOptions): Handlers<typeof TenantAdminService> {
  return admitted(options.admission, {
    ...createTenantHandlers(options),
    ...createNamespaceHandlers(options),
    ...createRecordHandlers(options),
    ...createRecordJobHandlers(options),
    ...createApiKeyHandlers(options),
    ...createHistoryHandlers(options),
    ...createUsageHandlers(options),
  });
}

/** Wraps the handlers so that a call beyond the tenant's quotas is refused before anything else is done. */
function admitted(
  admission: TenantAdminOptions["admission"],
  handlers: Handlers<typeof TenantAdminService>,
): Handlers<typeof TenantAdminService> {
  const all = Object.entries(handlers) as [string, (request: never, call: Call) => Answer<unknown>][];
  const wrapped = all.map(([name, handle]) => [
    name,
    (request: never, call: Call) => {
      admission.admitOperation(call.principal);
      return handle(request, call);
    },
  ]);
  return Object.fromEntries(wrapped) as Handlers<typeof TenantAdminService>;
}
