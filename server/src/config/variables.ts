import * as v from "valibot";
import { parseApiKey } from "../access/api-key.ts";
import { JWT_ALGORITHMS } from "../access/jwt-algorithms.ts";
import { MAX_WAIT_MS } from "../domain/limits.ts";
import { parseRedisUrl } from "../records/replay/redis-url.ts";
import { LOG_LEVELS } from "../telemetry/log.ts";
import {
  anyText,
  boolean,
  duration,
  type FormatMetadata,
  fileMode,
  oneOf,
  postgresUrl,
  secretText,
  secretWith,
  socketPath,
  someOf,
  trustedOrigin,
  trustedUrl,
  wholeNumber,
} from "./formats.ts";
import { parseKeyring } from "./keyring.ts";

/** A pepper of this many random characters cannot be found by trying. */
const MIN_PEPPER_LENGTH = 32;

const apiKey = secretWith((text) => parseApiKey(text) !== undefined, "an API key, ow_<id>_<secret>");
const encryptionKeys = secretWith(
  (text) => parseKeyring(text) !== undefined,
  "1 to 16 keys ID:KEY with commas between them, the first of which may be none: ids from 1 to 32767, keys of 32 bytes in base64",
);
const redisUrl = secretWith((text) => parseRedisUrl(text) !== undefined, "a URL such as redis://host:6379");
const collectorUrl = secretWith(
  (text) => /^https?:\/\//.test(text) && URL.canParse(text),
  "a URL such as http://collector:4318",
);
const port = wholeNumber(0, 65_535);

/** Returns the schema with a description of the variable. */
function described<const Schema extends v.GenericSchema>(schema: Schema, description: string) {
  return v.pipe(schema, v.description(description));
}

/**
 * Every environment variable of the server: its format, its default and its description. `npm run generate`
 * writes the table in `server/settings.md` from it.
 */
export const VARIABLES = {
  DATABASE_URL: described(postgresUrl, "Postgres. `npm start` starts its own if unset."),
  DATABASE_DIRECT_URL: described(
    v.optional(postgresUrl),
    "Postgres without a pooler in between, for migrations; `DATABASE_URL` if unset.",
  ),
  REDIS_URL: described(
    v.optional(redisUrl),
    "Redis or Valkey, which makes duplicates cheap: `redis://host:6379` or [another form](#redis). Optional.",
  ),
  ONCEWARD_CACHE_MIB: described(
    v.optional(wholeNumber(0, 16_384), "64"),
    "Maximum memory for cached completions, in MiB; 0 disables the memory cache.",
  ),
  ONCEWARD_API_KEY_PEPPER: described(
    secretText(MIN_PEPPER_LENGTH),
    "Secret that keys the digests of API keys; the same on every replica. `npm start` makes its own if unset.",
  ),
  ONCEWARD_API_KEY_SECOND_PEPPER: described(
    v.optional(secretText(MIN_PEPPER_LENGTH)),
    "A second pepper, under which API keys are valid, too: the next or the previous one during a [change of the pepper](../deploy/README.md#change-the-pepper).",
  ),
  ONCEWARD_ENCRYPTION_KEYS: described(
    v.optional(encryptionKeys),
    "Keys of [encryption at rest](#encryption-at-rest): the first one encrypts, all decrypt; `none` as the first stops encryption. Nothing is encrypted if unset.",
  ),
  ONCEWARD_ENCRYPTION_RATE: described(
    v.optional(wholeNumber(1, 100_000), "1000"),
    "Maximum records per second that the background task encrypts again after a change of keys, for all replicas together.",
  ),
  ONCEWARD_OPERATOR_KEY: described(
    v.optional(apiKey),
    "An operator's API key that is not stored in the database.",
  ),
  ONCEWARD_ANONYMOUS_TENANT: described(
    v.optional(anyText),
    "Calls without a credential act as a CALLER of this tenant. Allowed only with a loopback `ONCEWARD_HOST`.",
  ),
  ONCEWARD_JWT_ISSUER: described(
    v.optional(anyText),
    "Accepts [tokens](#tokens) of this issuer (`iss`) as credentials, in addition to API keys.",
  ),
  ONCEWARD_JWT_AUDIENCE: described(
    v.optional(anyText),
    "Audience (`aud`) that tokens must have; required with an issuer.",
  ),
  ONCEWARD_JWT_JWKS_URL: described(
    v.optional(trustedUrl),
    "URL of the issuer's public keys; required with an issuer.",
  ),
  ONCEWARD_JWT_ALGORITHMS: described(
    v.optional(someOf(JWT_ALGORITHMS), "RS256,PS256,ES256,EdDSA"),
    "Accepted signature algorithms of tokens.",
  ),
  ONCEWARD_JWT_TENANT_CLAIM: described(
    v.optional(anyText, "onceward_tenant"),
    "Claim with the token's tenant; an operator's token has none.",
  ),
  ONCEWARD_JWT_ROLE_CLAIM: described(
    v.optional(anyText, "onceward_role"),
    "Claim with the role: `CALLER`, `TENANT_ADMIN` or `OPERATOR`; `CALLER` if the claim is missing.",
  ),
  ONCEWARD_JWT_NAMESPACES_CLAIM: described(
    v.optional(anyText, "onceward_namespaces"),
    "Claim with the list of namespaces that the token may use; all if the claim is missing.",
  ),
  ONCEWARD_CONSOLE: described(
    v.optional(boolean, "true"),
    "`false` switches the [console](#console) off: no page, no sign-in, no cookies.",
  ),
  ONCEWARD_CONSOLE_ORIGIN: described(
    v.optional(trustedOrigin),
    "Address of the console as browsers see it, such as `https://onceward.example`; needed behind a balancer that ends TLS, and in a container.",
  ),
  ONCEWARD_CONSOLE_OIDC_CLIENT_ID: described(
    v.optional(anyText),
    "Lets people sign in to the console at the tokens' issuer, by OpenID Connect, as this client.",
  ),
  ONCEWARD_CONSOLE_OIDC_CLIENT_SECRET: described(
    v.optional(secretText(1)),
    "The client's secret; none for a public client.",
  ),
  ONCEWARD_CONSOLE_OIDC_SCOPES: described(
    v.optional(anyText, "openid"),
    "Scopes that the console asks for, with spaces between them; `openid` among them.",
  ),
  ONCEWARD_TLS_CERT: described(
    v.optional(anyText),
    "PEM file with the server's certificate and its chain: [TLS](#tls) on all three ports.",
  ),
  ONCEWARD_TLS_KEY: described(v.optional(anyText), "PEM file with the certificate's private key."),
  ONCEWARD_TLS_CLIENT_CA: described(
    v.optional(anyText),
    "PEM file with authorities: clients must present a certificate that one of them signed.",
  ),
  ONCEWARD_HOST: described(
    v.optional(anyText, "127.0.0.1"),
    "Address to listen on, for all ports unless `ONCEWARD_MANAGEMENT_HOST` is set.",
  ),
  ONCEWARD_MANAGEMENT_HOST: described(
    v.optional(anyText),
    "Address to listen on, for the management port; `ONCEWARD_HOST` if unset.",
  ),
  ONCEWARD_GRPC_PORT: described(v.optional(port, "50051"), "Native gRPC; 0 selects a free port."),
  ONCEWARD_SOCKET: described(
    v.optional(socketPath),
    "Path of a Unix socket for native gRPC beside its port, for callers on the same machine: without TLS, with the same credentials, one address of `ONCEWARD_CONNECTIONS_PER_ADDRESS`.",
  ),
  ONCEWARD_SOCKET_MODE: described(
    v.optional(fileMode, "0660"),
    "Who may connect to the socket, by the rights of its file: `0666` for every user.",
  ),
  ONCEWARD_SOCKET_GROUP: described(
    v.optional(wholeNumber(0, 2 ** 31)),
    "Number of the group that owns the socket; the process' own if unset.",
  ),
  ONCEWARD_HTTP_PORT: described(
    v.optional(port, "8080"),
    "Connect, gRPC-Web and JSON; 0 selects a free port.",
  ),
  ONCEWARD_MANAGEMENT_PORT: described(
    v.optional(port, "9090"),
    "`/livez`, `/readyz`, `/metrics`; 0 selects a free port.",
  ),
  ONCEWARD_LOG_LEVEL: described(
    v.optional(oneOf(LOG_LEVELS), "info"),
    "Lowest level that is logged. `debug` logs one line for each call and operation.",
  ),
  ONCEWARD_POOL_SIZE: described(
    v.optional(wholeNumber(2, 200), "12"),
    "Connections to Postgres for calls. Calls travel in batches: more connections are rarely faster. Administration and background tasks have 2 more, the heartbeat 1.",
  ),
  ONCEWARD_TENANT_SHARE: described(
    v.optional(wholeNumber(0, 10_000), "24"),
    "Maximum in-flight operations per kind and tenant while other tenants are active; active tenants share their sum by weight; 0 disables the limit.",
  ),
  ONCEWARD_PGBOUNCER: described(
    v.optional(boolean, "false"),
    "`DATABASE_URL` is [PgBouncer](#pgbouncer): no named statements, no start-up settings.",
  ),
  ONCEWARD_DEFAULT_TIMEOUT: described(
    v.optional(duration("1s", "10m"), `${MAX_WAIT_MS / 1000 + 10}s`),
    "Deadline of a call whose client sets none; longer than the longest wait.",
  ),
  ONCEWARD_REQUEST_TIMEOUT: described(
    v.optional(duration("1s", "10m"), "30s"),
    "Maximum time for a request to arrive, from its headers to its last byte.",
  ),
  ONCEWARD_CONNECTION_AGE: described(
    v.optional(duration("1s", "7d"), "30m"),
    "Age, ±10 %, at which a gRPC connection is asked to close, so that load spreads to new replicas.",
  ),
  ONCEWARD_CONNECTIONS_PER_ADDRESS: described(
    v.optional(wholeNumber(1, 10_000), "2000"),
    "Maximum connections from one IPv4 address or one IPv6 /64 to each of the gRPC and HTTP ports, which accept 10,000 in all. Raise it if a balancer or gateway shows its own address for all callers and opens more.",
  ),
  ONCEWARD_DRAIN_DELAY: described(
    v.optional(duration("0s", "5m"), "3s"),
    "Time from SIGTERM, when health reports NOT_SERVING, until connections are asked to close.",
  ),
  ONCEWARD_DRAIN_TIMEOUT: described(
    v.optional(duration("0s", "5m"), "10s"),
    "Time that calls then have to finish before the remaining connections are closed. The last counts and audit events are " +
      "stored within another 5 s; if the database does not answer for so long, they are lost.",
  ),
  ONCEWARD_SWEEP_INTERVAL: described(
    v.optional(duration("100ms", "1h"), "5s"),
    "Interval between two sweeps of a replica, ±20 %.",
  ),
  ONCEWARD_AUDIT_RETENTION: described(
    v.optional(duration("30d", "3650d"), "400d"),
    "Retention of audit events. The database refuses to delete events younger than 30 days.",
  ),
  ONCEWARD_USAGE_FLUSH: described(
    v.optional(duration("100ms", "1m"), "5s"),
    "Interval at which a replica stores its counts of tenants' usage, ±20 %.",
  ),
  ONCEWARD_EXPORT_TOKEN: described(
    v.optional(secretText(1)),
    "Bearer token that `export-history` sends to a webhook.",
  ),
  AWS_ACCESS_KEY_ID: described(v.optional(anyText), "Access key of `export-history` to `s3://`."),
  AWS_SECRET_ACCESS_KEY: described(v.optional(secretText(1)), "Its secret."),
  AWS_SESSION_TOKEN: described(v.optional(secretText(1)), "Its session, if it is temporary."),
  AWS_REGION: described(v.optional(anyText, "us-east-1"), "The bucket's region."),
  AWS_ENDPOINT_URL_S3: described(v.optional(anyText), "URL of another S3-compatible storage."),
  OTEL_EXPORTER_OTLP_ENDPOINT: described(
    v.optional(collectorUrl),
    "URL of a collector, such as `http://collector:4318`: turns [tracing](#tracing) on, as do the next two.",
  ),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: described(
    v.optional(collectorUrl),
    "The same with its path, such as `http://collector:4318/v1/traces`.",
  ),
  OTEL_TRACES_EXPORTER: described(
    v.optional(oneOf(["otlp", "none"])),
    "`otlp` exports to `http://localhost:4318` if no endpoint is set; `none` turns tracing off.",
  ),
  OTEL_EXPORTER_OTLP_PROTOCOL: described(
    v.optional(anyText),
    "Must be `http/protobuf` while tracing is on, unless the next one is.",
  ),
  OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: described(
    v.optional(anyText),
    "Must be `http/protobuf` while tracing is on.",
  ),
  OTEL_SDK_DISABLED: described(v.optional(boolean, "false"), "`true` turns tracing off."),
};

/** The names of the secret variables: `NAME_FILE` may name a file that contains the value. */
export const SECRETS: readonly string[] = Object.entries<VariableSchema>(VARIABLES).flatMap(
  ([name, schema]) => (factsOf(schema).secret ? [name] : []),
);

/** The schema of one variable. */
export type VariableSchema = (typeof VARIABLES)[keyof typeof VARIABLES];

/** Returns the facts about a variable that are printed. */
export function factsOf(schema: VariableSchema) {
  const isOptional = schema.type === "optional";
  return {
    ...(v.getMetadata(isOptional ? schema.wrapped : schema) as unknown as FormatMetadata),
    /** The text that applies if the variable is unset; undefined: it has no default. */
    fallback: isOptional ? schema.default : undefined,
    isRequired: !isOptional,
    description: v.getDescription(schema) ?? "",
  };
}
