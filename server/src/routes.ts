import { createOperatorService } from "./admin/operator/service.ts";
import { createPageTokens } from "./admin/pages.ts";
import { createTenantAdminService } from "./admin/tenant/service.ts";
import type { Admission } from "./admission/admission.ts";
import type { Authenticator } from "./auth/authenticate.ts";
import type { UsageMeter } from "./background/usage-meter.ts";
import type { ReplicaCache } from "./cache/replica-cache.ts";
import { createIdempotencyService } from "./claims/service.ts";
import type { Waiters } from "./claims/waiters.ts";
import { type Config, redactedConfig } from "./config/config.ts";
import { type Route, routesOf } from "./edge/route.ts";
import { IdempotencyService } from "./gen/onceward/v1/idempotency_pb.ts";
import { OperatorService } from "./gen/onceward/v1/operator_pb.ts";
import { TenantAdminService } from "./gen/onceward/v1/tenant_admin_pb.ts";
import type { AdministrationPool } from "./store/batching/administration-pool.ts";
import { createTenantLimiter } from "./store/batching/fair-queue.ts";
import type { Pool } from "./store/pool.ts";
import { createRecordStore } from "./store/records/record-store.ts";
import type { Metrics } from "./telemetry/metrics.ts";

/** The parts that the services need. */
export interface ServiceParts {
  readonly config: Config;
  readonly pool: Pool;
  readonly administrationPool: AdministrationPool;
  readonly metrics: Metrics;
  readonly authenticator: Authenticator;
  readonly admission: Admission;
  readonly replicaCache: ReplicaCache;
  readonly waiters: Waiters;
  readonly usage: UsageMeter;
  /** Returns the id of the installation, which each restore or promotion of the database changes. */
  readonly installationId: () => string;
  /** Returns the names of the dependencies that the replica currently works without. */
  readonly degradedReasons: () => readonly string[];
}

/** Creates the unary RPCs of all services, for all transports. */
export function createRoutes(parts: ServiceParts): readonly Route[] {
  const { config, pool, admission, waiters } = parts;
  const { replayCache, wakeChannel } = parts.replicaCache;
  const pepper = config.ONCEWARD_API_KEY_PEPPER;
  const onSettled = (name: string) => {
    waiters.wake(name);
    wakeChannel?.announce(name);
  };
  const records = createRecordStore(
    pool,
    createTenantLimiter({ weightOf: admission.weightOf, slotsPerTenant: config.ONCEWARD_TENANT_SHARE }),
  );
  const idempotency = createIdempotencyService({
    records,
    admission,
    replayCache,
    waiters,
    onSettled,
    onClaim: parts.metrics.claimed,
    usage: parts.usage,
  });
  const administration = {
    pool: parts.administrationPool,
    records,
    pageTokens: createPageTokens(pepper, parts.installationId),
    changes: parts.authenticator,
    pepper,
  };
  const tenantAdmin = createTenantAdminService({ ...administration, admission, onSettled });
  const operator = createOperatorService({
    ...administration,
    redactedConfig: redactedConfig(config),
    degradedReasons: parts.degradedReasons,
  });
  return [
    ...routesOf(IdempotencyService, "CALLER", idempotency),
    ...routesOf(TenantAdminService, "TENANT_ADMIN", tenantAdmin),
    ...routesOf(OperatorService, "OPERATOR", operator),
  ];
}
