import type { Logger } from "pino";
import type { Admission } from "./core/admission/admission.ts";
import type { Authenticator } from "./core/auth/authenticate.ts";
import type { ReplicaCache } from "./core/cache/replica-cache.ts";
import { createOperationLog } from "./core/claims/operation-log.ts";
import { createIdempotencyService } from "./core/claims/service.ts";
import type { Waiters } from "./core/claims/waiters.ts";
import { type Config, redactedConfig, withCurrentUrls } from "./core/config/config.ts";
import type { DatabaseClock } from "./core/domain/database-clock.ts";
import { createRecordTarget } from "./core/domain/record-target.ts";
import type { AdministrationPool } from "./core/store/batching/administration-pool.ts";
import { createTenantLimiter } from "./core/store/batching/fair-queue.ts";
import type { Pool } from "./core/store/pool.ts";
import { createRecordStore } from "./core/store/records/record-store.ts";
import type { Metrics } from "./core/telemetry/metrics.ts";
import type { Tracing } from "./core/telemetry/tracing.ts";
import { type Route, routesOf } from "./core/transport/route.ts";
import { createIdentityService } from "./features/administration/identity.ts";
import type { OperatorOptions } from "./features/administration/operator/options.ts";
import { createOperatorService } from "./features/administration/operator/service.ts";
import { createPageTokens } from "./features/administration/pages.ts";
import { createTenantAdminService } from "./features/administration/tenant/service.ts";
import type { Shards } from "./features/citus/shards.ts";
import { diagnose } from "./features/doctor/diagnose.ts";
import type { RecordEncryption } from "./features/encryption/record-encryption.ts";
import { traceBatch } from "./features/tracing/traced-batch.ts";
import type { UsageMeter } from "./features/usage/usage-meter.ts";
import { IdempotencyService } from "./gen/onceward/v1/idempotency_pb.ts";
import { IdentityService } from "./gen/onceward/v1/identity_pb.ts";
import { OperatorService } from "./gen/onceward/v1/operator_pb.ts";
import { TenantAdminService } from "./gen/onceward/v1/tenant_admin_pb.ts";

/** The parts that the services need. */
export interface ServiceParts {
  readonly config: Config;
  readonly log: Logger;
  readonly pool: Pool;
  /** Undefined on a plain Postgres. */
  readonly shards: Shards | undefined;
  readonly administrationPool: AdministrationPool;
  readonly encryption: RecordEncryption;
  readonly databaseClock: DatabaseClock;
  readonly metrics: Metrics;
  readonly authenticator: Authenticator;
  readonly admission: Admission;
  readonly replicaCache: ReplicaCache;
  readonly waiters: Waiters;
  readonly usage: UsageMeter;
  /** Returns the id of the installation, which each restore or promotion of the database changes. */
  readonly installationId: () => string;
  /** The state of this replica. */
  readonly replicaState: OperatorOptions["replicaState"];
  /** Undefined while tracing is off. */
  readonly tracing: Tracing | undefined;
}

/** Creates the unary RPCs of all services, for all transports. */
export function createRoutes(parts: ServiceParts): readonly Route[] {
  const { config, pool, admission, waiters, tracing } = parts;
  const { replayCache, wakeChannel } = parts.replicaCache;
  const pepper = config.ONCEWARD_API_KEY_PEPPER;
  const onSettled = (name: string) => {
    waiters.wake(name);
    wakeChannel?.announce(name);
  };
  const records = createRecordStore(
    pool,
    createTenantLimiter({
      weightOf: admission.weightOf,
      slotsPerTenant: config.ONCEWARD_TENANT_SHARE,
      observer: parts.metrics,
    }),
    parts.encryption,
    parts.shards,
    parts.databaseClock,
  );
  const idempotency = createIdempotencyService({
    records,
    admission,
    replayCache,
    waiters,
    onSettled,
    onClaim: parts.metrics.claimed,
    onOperation: createOperationLog({
      count: parts.metrics.operationEnded,
      log: parts.log,
      recordTarget: createRecordTarget(pepper),
    }),
    usage: parts.usage,
  });
  const administration = {
    pool: parts.administrationPool,
    records,
    pageTokens: createPageTokens(pepper, parts.installationId),
    changes: parts.authenticator,
    pepper,
  };
  const tenantAdmin = createTenantAdminService({
    ...administration,
    admission,
    encryption: parts.encryption,
    databaseClock: parts.databaseClock,
    onSettled,
  });
  const operator = createOperatorService({
    ...administration,
    redactedConfig: redactedConfig(config),
    replicaState: parts.replicaState,
    diagnose: () => diagnose({ config: withCurrentUrls(config), runnerFor: () => parts.administrationPool }),
  });
  return [
    ...routesOf(IdentityService, undefined, createIdentityService()),
    ...routesOf(
      IdempotencyService,
      "CALLER",
      tracing ? { ...idempotency, batch: traceBatch(idempotency.batch, tracing) } : idempotency,
    ),
    ...routesOf(TenantAdminService, "TENANT_ADMIN", tenantAdmin),
    ...routesOf(OperatorService, "OPERATOR", operator),
  ];
}
