import type { NumericPromise } from "./promise.ts";

type Row = readonly [says: string, file: string, constant: string, test: string];

const LIMITS = "server/src/core/domain/limits.ts";
const BOUNDS = "server/src/core/domain/policy-bounds.ts";
const POLICY = "server/src/core/domain/policy.ts";
const QUOTAS = "server/src/core/domain/quotas.ts";
const READ_MESSAGE = "server/src/core/transport/read-message.ts";

const BAD_INPUT = "test/transports/bad-input.test.ts";
const LIMITS_TEST = "test/transports/limits.test.ts";
const BATCH = "test/contract/batch.test.ts";
const POLICIES = "test/admin/policies.test.ts";
const POLICY_EFFECT = "test/contract/policy.test.ts";
const READING = "server/src/core/transport/read-message.test.ts";

const CONTRACT: readonly Row[] = [
  ["`key`: the caller's idempotency key. 1-255 bytes", LIMITS, "MAX_KEY_BYTES = 255", BAD_INPUT],
  ["at most 128 bytes: the same for every retry", LIMITS, "MAX_CLAIM_ID_BYTES = 128", BAD_INPUT],
  ['"payments-7f9c/worker-3". At most 128 bytes', LIMITS, "MAX_OWNER_BYTES = 128", BAD_INPUT],
  ["at most this long (0-60 s)", LIMITS, "MAX_WAIT_MS = 60_000", BAD_INPUT],
  ["1 s to the policy's max_lease", LIMITS, "MIN_LEASE_MS = 1000", LIMITS_TEST],
  ["1 min to the policy's key_retention, which is the default", LIMITS, "MIN_RETENTION_S = 60", LIMITS_TEST],
  ["for people who read the record. At most 1 KiB", LIMITS, "MAX_RELEASE_REASON_BYTES = 1024", LIMITS_TEST],
  ["INVALID_REQUEST (empty, more than 1,000 items)", LIMITS, "MAX_BATCH_ITEMS = 1000", BATCH],
  [
    "a batch, 4 MiB",
    LIMITS,
    "MAX_MESSAGE_BYTES = 4 * 1024 * 1024",
    "test/transports/unreadable-messages.test.ts",
  ],
  [
    "messages 64 other fields",
    "server/src/core/transport/scan-binary.ts",
    "MAX_FIELDS = 64",
    "server/src/core/transport/scan-binary.test.ts",
  ],
  [
    "Lists and maps have at most 1,024 elements",
    "server/src/core/transport/scan-binary.ts",
    "MAX_ELEMENTS = 1024",
    "server/src/core/transport/scan-binary.test.ts",
  ],
  [
    "with 16 in progress the server reads no more until one is answered",
    "server/src/core/transport/grpc/batch-stream.ts",
    "MAX_IN_FLIGHT = 16",
    "server/src/core/transport/grpc/batch-stream.test.ts",
  ],
  [
    "no less than 1/200 of its size",
    "server/src/core/transport/compression.ts",
    "MAX_RATIO = 200",
    "test/transports/unreadable-messages.test.ts",
  ],
  [
    "A request of more than 256 KiB may be compressed",
    "server/src/core/transport/compression.ts",
    "MAX_FREE_BYTES = 256 * 1024",
    "test/transports/unreadable-messages.test.ts",
  ],
];

const POLICY_PROTO: readonly Row[] = [
  ["Default: 72 h", POLICY, "keyRetentionS: 72 * HOUR_S", POLICY_EFFECT],
  [
    "The lease of a claim that sets none. Default: 30 s",
    POLICY,
    "defaultLeaseMs: 30_000",
    "test/contract/claim.test.ts",
  ],
  ["The longest lease that a claim may set. Default: 15 min", POLICY, "maxLeaseMs: 15 * 60_000", BAD_INPUT],
  [
    "The largest result, in bytes: its payload, and its metadata as compact JSON. Default: 64 KiB",
    POLICY,
    "maxResultBytes: 64 * 1024",
    LIMITS_TEST,
  ],
  ["1 min to 400 d", BOUNDS, "maxKeyRetentionS: 400 * DAY_S", "test/admin/operator-tenants.test.ts"],
  ["1 s to 24 h", BOUNDS, "maxLeaseMs: DAY_S * 1000", POLICIES],
  [
    "Default: 64 KiB; at most 1 MiB",
    BOUNDS,
    "maxResultBytes: 1024 * 1024",
    "test/admin/operator-tenants.test.ts",
  ],
  [
    "(QUOTA_NAMESPACES). 1-10,000",
    QUOTAS,
    "MAX_DECLARED_NAMESPACES = 10_000",
    "test/admin/operator-tenants.test.ts",
  ],
  [
    "Default: 1,000",
    QUOTAS,
    "DEFAULT_DECLARED_NAMESPACES = 1000",
    "server/src/core/admission/admission.test.ts",
  ],
  [
    "A message of more than 16 KiB",
    "server/src/core/admission/admission.ts",
    "BYTES_PER_OPERATION = 16 * 1024",
    "server/src/core/admission/admission.test.ts",
  ],
  [
    "A tenant that is five seconds of operations beyond",
    "server/src/core/admission/admission.ts",
    "MAX_OWED_BY_BATCHES_MS = 5000",
    "server/src/core/admission/admission.test.ts",
  ],
];

const RECORD_PROTO: readonly Row[] = [
  [
    "The payload's media type (RFC 9110); for the caller only. At most 255 bytes",
    LIMITS,
    "MAX_CONTENT_TYPE_BYTES = 255",
    BAD_INPUT,
  ],
  ["At most 64 entries", LIMITS, "MAX_METADATA_ENTRIES = 64", BAD_INPUT],
  ["a name has 1-128 bytes", LIMITS, "MAX_METADATA_NAME_BYTES = 128", LIMITS_TEST],
  ["a value at most 4,096 bytes", LIMITS, "MAX_METADATA_VALUE_BYTES = 4096", LIMITS_TEST],
  ["towards the result's size, at most 16 KiB in all", LIMITS, "MAX_METADATA_BYTES = 16 * 1024", LIMITS_TEST],
  ['e.g. "charged". 1-128 bytes', LIMITS, "MAX_CHECKPOINT_NAME_BYTES = 128", LIMITS_TEST],
  [
    "The data that the next claimant needs to continue. At most 16 KiB",
    LIMITS,
    "MAX_CHECKPOINT_STATE_BYTES = 16 * 1024",
    BAD_INPUT,
  ],
];

const TENANT_PROTO: readonly Row[] = [
  [
    "A tenant has at most 20 unfinished jobs",
    "server/src/core/domain/quotas.ts",
    "MAX_UNFINISHED_JOBS = 20",
    "test/admin/record-jobs.test.ts",
  ],
  [
    "finished jobs are kept for 90 d",
    "server/src/core/background/pruner.ts",
    "JOB_RETENTION_MS = 90 * DAY_MS",
    "test/admin/retention-of-history.test.ts",
  ],
  [
    "it is kept for 400 d",
    "server/src/core/background/pruner.ts",
    "USAGE_RETENTION_MS = 400 * DAY_MS",
    "test/admin/retention-of-history.test.ts",
  ],
  [
    "The key's purpose, at most 128 bytes",
    LIMITS,
    "MAX_API_KEY_LABEL_BYTES = 128",
    "test/admin/api-keys.test.ts",
  ],
  ["empty: all. At most 100", LIMITS, "MAX_API_KEY_NAMESPACES = 100", "test/admin/api-keys.test.ts"],
];

const ADMIN_PROTO: readonly Row[] = [
  [
    "`page_size` is reduced to at most 1,000",
    "server/src/features/administration/pages.ts",
    "MAX_PAGE_SIZE = 1000",
    "server/src/features/administration/pages.test.ts",
  ],
  [
    "(default: 50)",
    "server/src/features/administration/pages.ts",
    "DEFAULT_PAGE_SIZE = 50",
    "server/src/features/administration/pages.test.ts",
  ],
  [
    "Required, at most 1 KiB; kept in the audit event",
    LIMITS,
    "MAX_REASON_BYTES = 1024",
    "test/admin/resolve-record-refusals.test.ts",
  ],
  [
    "A page has at most 20 namespaces",
    "server/src/features/insight/rpc/key-quality.ts",
    "MAX_NAMESPACES = 20",
    "test/admin/key-quality.test.ts",
  ],
  [
    "At most 5 records that exist",
    "server/src/features/insight/rpc/key-quality.ts",
    "MAX_EXAMPLES = 5",
    "test/admin/key-quality.test.ts",
  ],
  [
    "From 0.001 to 100,000",
    "server/src/features/insight/rpc/retention-advice.ts",
    "MAX_PER_MILLION = 100_000",
    "test/admin/retention-advice.test.ts",
  ],
];

const SECURITY: readonly Row[] = [
  [
    "a cached credential is used for at most 9 s",
    "server/src/core/auth/credential-cache.ts",
    "MAX_AGE_MS = 9000",
    "test/admin/refresh-failures.test.ts",
  ],
  [
    "a decision takes at most 1 s",
    "server/src/core/auth/authenticate.ts",
    "DECISION_MS = 1000",
    "test/admin/authority-held-up.test.ts",
  ],
  [
    "clock tolerance 10 s",
    "server/src/core/auth/jwt.ts",
    "CLOCK_TOLERANCE_S = 10",
    "test/admin/tokens.test.ts",
  ],
  [
    "at most 256 KiB within 5 s (`server/src/core/auth/jwks.ts`)",
    "server/src/core/auth/jwks.ts",
    "MAX_BYTES = 256 * 1024",
    "server/src/core/auth/jwks.test.ts",
  ],
  [
    "cookie of 10 minutes",
    "server/src/features/console/issuer-sign-in.ts",
    "MAX_AGE_S = 600",
    "test/transports/console/oidc.test.ts",
  ],
  [
    "at most 8 groups of denials per actor",
    "server/src/core/transport/denials.ts",
    "MAX_OF_ACTOR = 8",
    "server/src/core/transport/denials.test.ts",
  ],
  [
    "64 per tenant and minute",
    "server/src/core/transport/denials.ts",
    "MAX_OF_TENANT = 64",
    "server/src/core/transport/denials.test.ts",
  ],
  [
    "64 KiB; 2 MiB with a result",
    READ_MESSAGE,
    "binary: { maxBytes: 2 * MIB, maxFields: MAX_FIELDS_IN_ALL }",
    "test/transports/unreadable-messages.test.ts",
  ],
  ["4,096 (batch 262,144)", "server/src/core/transport/scan-binary.ts", "MAX_FIELDS_IN_ALL = 4096", READING],
  [
    "JSON: depth; digits of a number; values | 32; 4,096",
    "server/src/core/transport/scan-json.ts",
    "MAX_DEPTH = 32",
    "server/src/core/transport/scan-json.test.ts",
  ],
  [
    "32; 4,096; 4,096 (batch 16,384)",
    "server/src/core/transport/scan-json.ts",
    "MAX_DIGITS = 4096",
    "server/src/core/transport/scan-json.test.ts",
  ],
  [
    "sessions of one API key or token's subject | 20",
    "server/src/features/console/store/console-sessions.ts",
    "MAX_SESSIONS = 20",
    "test/transports/console/sessions.test.ts",
  ],
  ["cut to 10 min", READ_MESSAGE, "MAX_TIMEOUT_MS = 10 * 60_000", READING],
];

/** The table "What is bounded" of SECURITY.md, as far as it is about memory, connections and turns. */
const BOUNDED: readonly Row[] = [
  [
    "failed attempts to sign in to the console: per address (IPv6: /64); per process | 20",
    "server/src/features/console/attempts.ts",
    "PER_ADDRESS = { burst: 20, perSecond: 0.2 }",
    "server/src/features/console/attempts.test.ts",
  ],
  [
    "20, then one each 5 s; 200, then 20 each second",
    "server/src/features/console/attempts.ts",
    "IN_ALL = { burst: 200, perSecond: 20 }",
    "server/src/features/console/attempts.test.ts",
  ],
  [
    "sign-ins in progress, per process, and per address that has used up its failures; body of a sign-in | 32",
    "server/src/features/console/attempts.ts",
    "MAX_IN_PROGRESS = 32",
    "server/src/features/console/attempts.test.ts",
  ],
  [
    "sign-ins in progress, per process, and per address that has used up its failures; body of a sign-in | 32, 4",
    "server/src/features/console/attempts.ts",
    "MAX_IN_PROGRESS_OF_FAILING = 4",
    "server/src/features/console/attempts.test.ts",
  ],
  [
    "connections per port; per address (IPv6: /64) | 10,000",
    "server/src/core/transport/grpc/server.ts",
    "MAX_CONNECTIONS = 10_000",
    "server/src/core/transport/port-limits.test.ts",
  ],
  [
    "connections per port; per address (IPv6: /64) | 10,000",
    "server/src/core/transport/http/server.ts",
    "MAX_CONNECTIONS = 10_000",
    "server/src/core/transport/port-limits.test.ts",
  ],
  [
    "management port: connections, per address; idle time; headers of open requests | 256",
    "server/src/core/transport/management/server.ts",
    "MAX_CONNECTIONS = 256",
    "server/src/core/transport/port-limits.test.ts",
  ],
  [
    "256, 32; 10 s",
    "server/src/core/transport/management/server.ts",
    "MAX_PER_ADDRESS = 32",
    "server/src/core/transport/port-limits.test.ts",
  ],
  [
    "256, 32; 10 s",
    "server/src/core/transport/management/server.ts",
    "SILENCE_MS = 10_000",
    "server/src/core/transport/port-limits.test.ts",
  ],
  [
    "unfinished messages per process, tenant, connection | 24",
    "server/src/core/transport/memory-budgets.ts",
    "maxBytes: 24 * MIB",
    "server/src/core/transport/memory-budgets.test.ts",
  ],
  [
    "24, 12, 9 MiB, each waits",
    "server/src/core/transport/memory-budgets.ts",
    "maxTenantBytes: 12 * MIB",
    "server/src/core/transport/memory-budgets.test.ts",
  ],
  [
    "12, 9 MiB, each waits",
    "server/src/core/transport/memory-budgets.ts",
    "maxConnectionBytes: 9 * MIB",
    "server/src/core/transport/memory-budgets.test.ts",
  ],
  [
    "with less than 1 GiB of memory in proportion | 256, 128, 64 MiB",
    "server/src/core/transport/memory-budgets.ts",
    "maxBytes: 64 * MAX_MESSAGE_BYTES * BUDGET_SHARE",
    "server/src/core/transport/memory-budgets.test.ts",
  ],
  [
    "256, 128, 64 MiB, 4 MiB each",
    "server/src/core/transport/memory-budgets.ts",
    "maxTenantBytes: 32 * MAX_MESSAGE_BYTES * BUDGET_SHARE",
    "server/src/core/transport/memory-budgets.test.ts",
  ],
  [
    "128, 64 MiB, 4 MiB each",
    "server/src/core/transport/memory-budgets.ts",
    "maxConnectionBytes: 16 * MAX_MESSAGE_BYTES * BUDGET_SHARE",
    "server/src/core/transport/memory-budgets.test.ts",
  ],
  [
    "with less than 1 GiB of memory in proportion | 384, 256, 32 MiB",
    "server/src/core/transport/memory-budgets.ts",
    "MAX_OUTBOUND_BYTES = 384 * MIB",
    "server/src/core/transport/memory-budgets.test.ts",
  ],
  [
    "384, 256, 32 MiB",
    "server/src/core/transport/memory-budgets.ts",
    "MAX_GRPC_CONNECTION_BYTES = 256 * MIB",
    "server/src/core/transport/memory-budgets.test.ts",
  ],
  [
    "256, 32 MiB",
    "server/src/core/transport/memory-budgets.ts",
    "MAX_HTTP_CONNECTION_BYTES = 32 * MIB",
    "server/src/core/transport/memory-budgets.test.ts",
  ],
  [
    "with less than 1 GiB of memory in proportion | 128 MiB",
    "server/src/core/transport/pipeline.ts",
    "MAX_IN_FLIGHT_BYTES = 128 * 1024 * 1024",
    "server/src/core/transport/pipeline.test.ts",
  ],
  [
    "credentials being looked up, per process | 16,384 calls",
    "server/src/core/transport/pipeline.ts",
    "MAX_CREDENTIAL_LOOKUPS = 16_384",
    "server/src/core/transport/pipeline.test.ts",
  ],
  [
    "that are answered in a turn of the event loop | 8",
    "server/src/core/transport/pipeline.ts",
    "MAX_REFUSED_PER_TURN = 8",
    "server/src/core/transport/pipeline.test.ts",
  ],
  [
    "waiting for their turn | 1; 16",
    "server/src/core/transport/http/port.ts",
    "MAX_WAITING = 16",
    "server/src/core/transport/http/port.test.ts",
  ],
  [
    "that start in one turn of the event loop, per port; their processor time | 64",
    "server/src/core/transport/turn-shares.ts",
    "MAX_REQUESTS_PER_TURN = 64",
    "server/src/core/transport/http/port.test.ts",
  ],
  [
    "their processor time | 64; 10 ms",
    "server/src/core/transport/turn-shares.ts",
    "MAX_MS_PER_TURN = 10",
    "server/src/core/transport/turn-shares.test.ts",
  ],
  [
    "per process, per address; idle time of their reader | 32 MiB",
    "server/src/core/transport/static-files.ts",
    "MAX_UNREAD_BYTES = 32 * MIB",
    "server/src/core/transport/static-files.test.ts",
  ],
  [
    "32 MiB, 8 MiB; 30 s",
    "server/src/core/transport/static-files.ts",
    "MAX_UNREAD_BYTES_PER_ADDRESS = 8 * MIB",
    "server/src/core/transport/static-files.test.ts",
  ],
  [
    "8 MiB; 30 s",
    "server/src/core/transport/static-files.ts",
    "MAX_SILENCE_MS = 30_000",
    "server/src/core/transport/static-files.test.ts",
  ],
  [
    "reflection streams of a connection, requests of one | 10,000",
    "server/src/core/transport/grpc/health.ts",
    "MAX_WATCHES = 10_000",
    "server/src/core/transport/grpc/standard-services.test.ts",
  ],
  [
    "10,000, 16; 8",
    "server/src/core/transport/grpc/reflection.ts",
    "MAX_STREAMS = 8",
    "server/src/core/transport/grpc/standard-services.test.ts",
  ],
  [
    "16; 8, 1,000",
    "server/src/core/transport/grpc/reflection.ts",
    "MAX_REQUESTS = 1000",
    "server/src/core/transport/grpc/standard-services.test.ts",
  ],
  [
    "log lines of refused operations at `info` | 5",
    "server/src/core/claims/after-operation.ts",
    "MAX_REFUSALS_OF_TENANT = 5",
    "server/src/core/claims/after-operation.test.ts",
  ],
  [
    "5 of a tenant and 100 in all",
    "server/src/core/claims/after-operation.ts",
    "MAX_REFUSALS = 100",
    "server/src/core/claims/after-operation.test.ts",
  ],
  [
    "100 in all, per second and replica",
    "server/src/core/claims/after-operation.ts",
    "WINDOW_MS = 1000",
    "server/src/core/claims/after-operation.test.ts",
  ],
  [
    "reflection streams of a connection, requests of one | 10,000, 16",
    "server/src/core/transport/grpc/health.ts",
    "MAX_WATCHES_PER_CONNECTION = 16",
    "server/src/core/transport/grpc/server.test.ts",
  ],
  [
    "open requests of an address, of a port; their headers; both in proportion to the memory | 16,384, 32,768",
    "server/src/core/transport/memory-budgets.ts",
    "MAX_OPEN_REQUESTS = 32_768",
    "server/src/core/transport/memory-budgets.test.ts",
  ],
  [
    "concurrent streams of a connection; batches in progress on a stream | 2,000",
    "server/src/core/transport/grpc/server.ts",
    "MAX_CONCURRENT_STREAMS = 2000",
    "server/src/core/transport/grpc/server.test.ts",
  ],
];

const SERVER_README: readonly Row[] = [
  [
    "The file has at most 16 KiB",
    "server/src/core/config/secret-files.ts",
    "MAX_BYTES = 16_384",
    "test/commands/secret-files.test.ts",
  ],
  [
    "A key or a token's subject may sign in 100 times on a replica",
    "server/src/features/console/attempts.ts",
    "PER_CREDENTIAL = { burst: 100, perSecond: 0.5 }",
    "test/transports/console/sessions.test.ts",
  ],
];

function promisesOf(document: string, rows: readonly Row[]): readonly NumericPromise[] {
  return rows.map(([says, file, constant, test]) => ({ document, says, file, constant, test }));
}

/** The numeric promises of the contract, SECURITY.md and server/README.md, by document. */
export const PROMISES: readonly NumericPromise[] = [
  ...promisesOf("proto/onceward/v1/idempotency.proto", CONTRACT),
  ...promisesOf("proto/onceward/v1/policy.proto", POLICY_PROTO),
  ...promisesOf("proto/onceward/v1/record.proto", RECORD_PROTO),
  ...promisesOf("proto/onceward/v1/tenant.proto", TENANT_PROTO),
  ...promisesOf("proto/onceward/v1/tenant_admin.proto", ADMIN_PROTO),
  ...promisesOf("SECURITY.md", SECURITY),
  ...promisesOf("SECURITY.md", BOUNDED),
  ...promisesOf("server/README.md", SERVER_README),
];
