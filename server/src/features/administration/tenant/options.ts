import type { Admission } from "../../../core/admission/admission.ts";
import type { ChangeListener } from "../../../core/auth/authenticate.ts";
import type { Handlers } from "../../../core/calls/call.ts";
import type { DatabaseClock } from "../../../core/domain/database-clock.ts";
import type { AdministrationPool } from "../../../core/store/batching/administration-pool.ts";
import type { RecordStore } from "../../../core/store/records/record-store.ts";
import type { RecordValues } from "../../../core/store/records/record-values.ts";
import type { TenantAdminService } from "../../../gen/onceward/v1/tenant_admin_pb.ts";
import type { PageTokens } from "../pages.ts";

/** The parts that TenantAdminService needs. */
export interface TenantAdminOptions {
  readonly pool: AdministrationPool;
  readonly admission: Pick<Admission, "admitOperation" | "admitNamespace" | "admitRecordJob">;
  readonly records: Pick<RecordStore, "read">;
  readonly databaseClock: Pick<DatabaseClock, "latestMs">;
  readonly pageTokens: PageTokens;
  /** Receives every change, after its commit. */
  readonly changes: ChangeListener;
  readonly encryption: RecordValues;
  /** Keys the digests of API keys, and the hashes of records' keys in audit events. */
  readonly pepper: string;
  /** Wakes the calls that wait for a record, on every replica. */
  readonly onSettled: (name: string) => void;
}

/** The handlers of some RPCs of TenantAdminService. */
export type TenantAdminRpcs<Name extends keyof Handlers<typeof TenantAdminService>> = Pick<
  Handlers<typeof TenantAdminService>,
  Name
>;
