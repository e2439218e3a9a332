import type { Call } from "../../../server/src/access/call.ts";
import { readConfig } from "../../../server/src/config/config.ts";
import { readInstallation } from "../../../server/src/database/installation.ts";
import { openPool } from "../../../server/src/database/pool.ts";
import { createFindTenants } from "../../../server/src/database/tenants/tenants.ts";
import type { Principal } from "../../../server/src/domain/tenant.ts";
import { IdempotencyService } from "../../../server/src/gen/onceward/v1/idempotency_pb.ts";
import { findResolved } from "../../../server/src/records/claim/find-resolved.ts";
import { createWaiters } from "../../../server/src/records/claim/waiters.ts";
import { UNLIMITED } from "../../../server/src/records/engine/fair-queue.ts";
import { createRecordStore } from "../../../server/src/records/record-store.ts";
import { signedFormat } from "../../../server/src/records/replay/entry-format.ts";
import { openReplicaCache } from "../../../server/src/records/replay/replica-cache.ts";
import { createIdempotencyService } from "../../../server/src/records/service.ts";
import { createLog } from "../../../server/src/telemetry/log.ts";
import { createMetrics } from "../../../server/src/telemetry/metrics.ts";
import {
  createInboundBudget,
  createOutboundTotal,
  createReplyBudget,
  createRequestBudget,
} from "../../../server/src/transport/bounds/memory-budgets.ts";
import { createGrpcServer } from "../../../server/src/transport/grpc/server.ts";
import type { Pipeline } from "../../../server/src/transport/pipeline.ts";
import { readMessage } from "../../../server/src/transport/receive/read-message.ts";
import { routesOf } from "../../../server/src/transport/route.ts";

/**
 * The service without its pipeline, for comparison: the same transport, handlers, caches and statements, but
 * without authentication, deadlines, and metrics other than those of the cache. Runs as a child process.
 */
const config = readConfig(
  Object.fromEntries(Object.entries(process.env).filter(([name]) => name !== "BENCH_TENANT_ID")),
);
const tenantId = Number(process.env.BENCH_TENANT_ID);
const log = createLog("info", process.stdout);
const pool = openPool({
  databaseUrl: config.DATABASE_URL,
  size: config.ONCEWARD_POOL_SIZE,
  throughPgBouncer: false,
});
const findTenants = createFindTenants(pool);
/** As often as the real server refreshes tenants; a cached copy needs their cache epoch. */
const REFRESH_MS = 4000;
/** The real server's default; no call reaches it here. */
const TIMEOUT_MS = 70_000;

let principal = await readPrincipal();
setInterval(() => {
  readPrincipal().then(
    (fresh) => {
      principal = fresh;
    },
    // The database has stopped: the bench is ending.
    () => process.exit(1),
  );
}, REFRESH_MS);

const waiters = createWaiters({
  findResolved: (ids) => findResolved({ pool }, ids),
  onCheckFailed: () => {},
  onFirstWaiter: () => {},
  onLastWaiterGone: () => {},
});
const replicaCache = openReplicaCache({
  maxBytes: config.ONCEWARD_CACHE_MIB * 1024 * 1024,
  redisUrl: () => config.REDIS_URL,
  installationId: (await readInstallation(pool))?.id ?? "",
  format: signedFormat(config.ONCEWARD_API_KEY_PEPPER),
  onSettled: waiters.wake,
  metrics: createMetrics("bare"),
  log,
});
const idempotency = createIdempotencyService({
  records: createRecordStore(pool, UNLIMITED),
  admission: {
    startCall: () => undefined,
    countMessage: () => {},
    admitBatch: () => {},
    admitOperation: () => {},
    countOperation: () => {},
    countsRecords: () => false,
    admitRecord: () => () => {},
    expectRecord: () => () => {},
    refuseRecord: () => {},
    admitNamespace: () => {},
    admitRecordJob: () => {},
    resultAdded: () => {},
    weightOf: () => 1,
  },
  replayCache: replicaCache.replayCache,
  waiters,
  onSettled(name) {
    waiters.wake(name);
    replicaCache.wakeChannel?.announce(name);
  },
  onClaim: () => {},
  onOperation: () => {},
  usage: {
    claimed: () => {},
    refused: () => {},
    limited: () => {},
    took: () => {},
    count: () => {},
    declined: () => {},
  },
});

const straight: Pipeline = {
  async answer(route, incoming, encode) {
    const message = readMessage(route.method, await incoming.receive(principal), () => {});
    const call: Call = {
      principal,
      requestId: "",
      receivedAtMs: performance.now(),
      atMs: performance.now() + TIMEOUT_MS,
      cancelled: false,
      again: () => Promise.resolve(call),
      get signal() {
        return incoming.signal;
      },
      refusalOf: (error) => {
        throw error;
      },
    };
    return encode(await route.handle(message instanceof Promise ? await message : message, call));
  },
  callsInFlight: () => 0,
  authenticate: async () => principal,
};

const grpc = createGrpcServer({
  routes: routesOf(IdempotencyService, idempotency),
  pipeline: straight,
  inboundBudget: createInboundBudget(),
  outboundTotal: createOutboundTotal(),
  replyBudget: createReplyBudget(),
  requestBudget: createRequestBudget(),
  maxPerAddress: config.ONCEWARD_CONNECTIONS_PER_ADDRESS,
  connectionAgeMs: config.ONCEWARD_CONNECTION_AGE,
  requestTimeoutMs: config.ONCEWARD_REQUEST_TIMEOUT,
  tls: undefined,
});
const grpcPort = await grpc.listen(config.ONCEWARD_HOST, 0);
log.info({ grpcPort, httpPort: 0, managementPort: 0 }, "serving");

async function readPrincipal(): Promise<Principal> {
  const tenant = (await findTenants([tenantId])).get(tenantId);
  if (tenant === undefined) throw new Error(`there is no tenant ${tenantId}`);
  return {
    role: "CALLER",
    actor: "bench",
    tenant,
    namespaces: undefined,
    goodUntilMs: Number.POSITIVE_INFINITY,
  };
}
