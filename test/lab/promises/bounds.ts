/** A number that readers are promised, and the test that holds it. Paths are from the root. */
export interface Bound {
  readonly file: string;
  /** The constant in the file; of an object, the members that lead to the number: `REPLY_LIMITS.maxBytes`. Of a proto file, message, field and fact. */
  readonly constant: string;
  /** The test file that fails when the constant is changed tenfold. */
  readonly test: string;
}

/** Files below `server/src/`, constants in them, and the test that holds these: by default the one beside the source. */
const ROWS: readonly (readonly [file: string, constants: string, test?: string])[] = [
  ["access/admission.ts", "BYTES_PER_OPERATION MAX_OWED_BY_BATCHES_MS"],
  ["access/authenticate.ts", "DECISION_MS", "test/admin/authority-held-up.test.ts"],
  ["access/credential-cache.ts", "MAX_AGE_MS", "test/admin/refresh-failures.test.ts"],
  ["access/jwks.ts", "MAX_BYTES"],
  ["access/jwt.ts", "CLOCK_TOLERANCE_S", "test/admin/tokens.test.ts"],
  ["background/pruner.ts", "JOB_RETENTION_MS USAGE_RETENTION_MS", "test/admin/retention-of-history.test.ts"],
  ["records/after-operation.ts", "MAX_REFUSALS MAX_REFUSALS_OF_TENANT WINDOW_MS"],
  ["config/secret-files.ts", "MAX_BYTES", "test/commands/secret-files.test.ts"],
  ["domain/limits.ts", "MAX_API_KEY_LABEL_BYTES MAX_API_KEY_NAMESPACES", "test/admin/api-keys.test.ts"],
  ["domain/limits.ts", "MAX_REASON_BYTES", "test/admin/resolve-record.test.ts"],
  [
    "domain/limits.ts",
    "MAX_CHECKPOINT_STATE_BYTES MAX_CLAIM_ID_BYTES MAX_CONTENT_TYPE_BYTES MAX_KEY_BYTES",
    "test/transports/bad-input.test.ts",
  ],
  [
    "domain/limits.ts",
    "MAX_BATCH_ITEMS MAX_METADATA_ENTRIES MAX_OWNER_BYTES MAX_WAIT_MS",
    "test/transports/bad-input.test.ts",
  ],
  [
    "domain/limits.ts",
    "MAX_CHECKPOINT_NAME_BYTES MAX_METADATA_BYTES MAX_METADATA_NAME_BYTES MAX_METADATA_VALUE_BYTES",
    "test/transports/limits.test.ts",
  ],
  [
    "domain/limits.ts",
    "MAX_RELEASE_REASON_BYTES MIN_LEASE_MS MIN_RETENTION_S",
    "test/transports/limits.test.ts",
  ],
  ["domain/limits.ts", "MAX_MESSAGE_BYTES", "test/transports/unreadable-messages.test.ts"],
  ["domain/quotas.ts", "MAX_UNFINISHED_JOBS", "test/admin/record-jobs.test.ts"],
  [
    "transport/receive/compression.ts",
    "MAX_FREE_BYTES MAX_RATIO",
    "test/transports/unreadable-messages.test.ts",
  ],
  ["transport/denials.ts", "MAX_OF_ACTOR MAX_OF_TENANT"],
  ["transport/grpc/batch-stream.ts", "MAX_IN_FLIGHT"],
  ["transport/grpc/health.ts", "MAX_WATCHES_PER_CONNECTION", "server/src/transport/grpc/server.test.ts"],
  ["transport/grpc/health.ts", "MAX_WATCHES", "server/src/transport/grpc/standard-services.test.ts"],
  [
    "transport/grpc/reflection.ts",
    "MAX_REQUESTS MAX_STREAMS",
    "server/src/transport/grpc/standard-services.test.ts",
  ],
  ["transport/grpc/server.ts", "MAX_CONCURRENT_STREAMS"],
  ["transport/grpc/server.ts", "MAX_CONNECTIONS", "server/src/transport/port-limits.test.ts"],
  ["transport/http/port.ts", "MAX_WAITING"],
  ["transport/http/server.ts", "MAX_CONNECTIONS", "server/src/transport/port-limits.test.ts"],
  [
    "transport/management/server.ts",
    "MAX_CONNECTIONS MAX_PER_ADDRESS SILENCE_MS",
    "server/src/transport/port-limits.test.ts",
  ],
  ["transport/bounds/memory-budgets.ts", "MAX_GRPC_CONNECTION_BYTES MAX_HTTP_CONNECTION_BYTES"],
  ["transport/bounds/memory-budgets.ts", "MAX_OPEN_REQUESTS MAX_OUTBOUND_BYTES"],
  ["transport/bounds/memory-budgets.ts", "INBOUND_LIMITS.maxBytes INBOUND_LIMITS.maxTenantBytes"],
  ["transport/bounds/memory-budgets.ts", "INBOUND_LIMITS.maxConnectionBytes REPLY_LIMITS.maxBytes"],
  ["transport/bounds/memory-budgets.ts", "REPLY_LIMITS.maxTenantBytes REPLY_LIMITS.maxConnectionBytes"],
  ["transport/pipeline.ts", "MAX_CREDENTIAL_LOOKUPS MAX_IN_FLIGHT_BYTES MAX_REFUSED_PER_TURN"],
  ["transport/receive/read-message.ts", "MAX_TIMEOUT_MS"],
  [
    "transport/receive/read-message.ts",
    "WITH_RESULT.binary.maxBytes",
    "test/transports/unreadable-messages.test.ts",
  ],
  ["transport/receive/scan-binary.ts", "MAX_ELEMENTS MAX_FIELDS"],
  [
    "transport/receive/scan-binary.ts",
    "MAX_FIELDS_IN_ALL",
    "server/src/transport/receive/read-message.test.ts",
  ],
  ["transport/receive/scan-json.ts", "MAX_DEPTH MAX_DIGITS"],
  ["transport/http/static-files.ts", "MAX_SILENCE_MS MAX_UNREAD_BYTES MAX_UNREAD_BYTES_PER_ADDRESS"],
  ["transport/bounds/turn-shares.ts", "MAX_MS_PER_TURN"],
  ["transport/bounds/turn-shares.ts", "MAX_REQUESTS_PER_TURN", "server/src/transport/http/port.test.ts"],
  ["admin/pages.ts", "DEFAULT_PAGE_SIZE MAX_PAGE_SIZE"],
  ["console/attempts.ts", "IN_ALL.burst MAX_IN_PROGRESS"],
  ["console/attempts.ts", "MAX_IN_PROGRESS_OF_FAILING PER_ADDRESS.burst"],
  ["console/attempts.ts", "PER_CREDENTIAL.burst", "test/transports/console/sessions.test.ts"],
  ["console/issuer-sign-in.ts", "MAX_AGE_S", "test/transports/console/oidc.test.ts"],
  ["console/store/console-sessions.ts", "MAX_SESSIONS", "test/transports/console/sessions.test.ts"],
  ["insight/get-key-quality.ts", "MAX_EXAMPLES MAX_NAMESPACES", "test/admin/key-quality.test.ts"],
  ["insight/retention-advice.ts", "MAX_PER_MILLION", "test/admin/retention-advice.test.ts"],
];

/** Facts of the contract's fields in `policy.proto`, and the test that holds these. */
const FACTS: readonly (readonly [facts: string, test: string])[] = [
  ["Policy.key_retention.max", "test/admin/operator-tenants.test.ts"],
  ["Policy.max_result_bytes.max", "test/admin/operator-tenants.test.ts"],
  ["PolicyBounds.max_lease.default", "test/admin/policies.test.ts"],
  ["Policy.default_lease.default", "test/contract/claim.test.ts"],
  ["Policy.key_retention.default", "test/contract/policy.test.ts"],
  ["Policy.max_lease.default", "test/transports/bad-input.test.ts"],
  ["Policy.max_result_bytes.default", "test/transports/limits.test.ts"],
  ["Quotas.declared_namespaces.default", "server/src/access/admission.test.ts"],
  ["Quotas.declared_namespaces.max", "test/admin/operator-tenants.test.ts"],
];

/** The numbers that the contract, SECURITY.md and server/settings.md promise. */
export const BOUNDS: readonly Bound[] = [
  ...ROWS.flatMap(([path, constants, test]) => {
    const file = `server/src/${path}`;
    return constants
      .split(" ")
      .map((constant) => ({ file, constant, test: test ?? file.replace(".ts", ".test.ts") }));
  }),
  ...FACTS.map(([constant, test]) => ({ file: "proto/onceward/v1/policy.proto", constant, test })),
];

/**
 * Returns the text of a file whose constant, or whose fact, is ten times as large.
 *
 * @throws Error if the text does not define it.
 */
export function changedTenfold(source: string, { file, constant }: Bound): string {
  const [name = "", ...members] = constant.split(".");
  const isFact = file.endsWith(".proto");
  const path = members.map((member) => `[^;]*?\\b${member}: `).join("");
  const definition = isFact
    ? new RegExp(`(message ${name} [^]*? ${members[0]} = \\d+ \\[[^;]*?\\b${members[1]}: "?)(\\d+)`)
    : new RegExp(`^((?:export )?const ${name}\\b[^;=]*= ${path})([^{},;]+)`, "m");
  if (!definition.test(source)) throw new Error(`no ${constant} is defined`);
  return source.replace(definition, (_, before, value) =>
    isFact ? `${before}${value}0` : `${before}10 * (${value})`,
  );
}
