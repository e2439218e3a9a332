import { parseApiKey } from "../auth/api-key.ts";
import { parseRedisUrl } from "../cache/redis-url.ts";
import { LOG_LEVELS } from "../telemetry/log.ts";
import { incompleteCredentials, JWT_VARIABLES, TLS_VARIABLES } from "./credentials.ts";
import {
  anyText,
  isLoopback,
  type Kind,
  milliseconds,
  oneOf,
  optional,
  postgresUrl,
  secretText,
  type Variable,
  variable,
  wholeNumber,
  yesOrNo,
} from "./kinds.ts";

/** As many random characters as a pepper needs that nobody can try out. */
const MIN_PEPPER_LENGTH = 32;

const apiKey: Kind<string> = {
  parse: (text) => (parseApiKey(text) === undefined ? { ok: false } : { ok: true, value: text }),
  format: "an API key, ow_<id>_<secret>",
  secret: true,
};

const redisUrl: Kind<string> = {
  parse: (text) => (parseRedisUrl(text) === undefined ? { ok: false } : { ok: true, value: text }),
  format: "a URL such as redis://host:6379",
  secret: true,
};

/** Everything that can be configured; the table in `server/README.md` is made of it. */
export const VARIABLES = {
  DATABASE_URL: variable(postgresUrl, undefined, "Where Postgres is. `npm start` starts its own if unset."),
  DATABASE_DIRECT_URL: variable(
    optional(postgresUrl),
    undefined,
    "Postgres past any pooler, for migrations; `DATABASE_URL` if unset.",
  ),
  REDIS_URL: variable(
    optional(redisUrl),
    undefined,
    "Redis or Valkey, to make repeats cheap: `redis://host:6379` or [another form](#redis). Never needed.",
  ),
  ONCEWARD_CACHE_MIB: variable(
    wholeNumber(0, 16_384),
    "64",
    "How much of completed records is kept in memory, at most; 0 keeps none.",
  ),
  ONCEWARD_API_KEY_PEPPER: variable(
    secretText(MIN_PEPPER_LENGTH),
    undefined,
    "Keys the digests of API keys; the same on every replica. `npm start` makes its own if unset.",
  ),
  ONCEWARD_OPERATOR_KEY: variable(
    optional(apiKey),
    undefined,
    "An operator's API key that isn't in the database.",
  ),
  ONCEWARD_ANONYMOUS_TENANT: variable(
    optional(anyText),
    undefined,
    "Calls without a credential act as this tenant's CALLER. Only on a loopback `ONCEWARD_HOST`.",
  ),
  ...JWT_VARIABLES,
  ...TLS_VARIABLES,
  ONCEWARD_HOST: variable(
    anyText,
    "127.0.0.1",
    "The address that all ports are bound to, but the management port where it has its own.",
  ),
  ONCEWARD_MANAGEMENT_HOST: variable(
    optional(anyText),
    undefined,
    "The address that the management port is bound to; `ONCEWARD_HOST` if unset.",
  ),
  ONCEWARD_GRPC_PORT: variable(wholeNumber(0, 65535), "50051", "Native gRPC; 0 takes a free port."),
  ONCEWARD_HTTP_PORT: variable(
    wholeNumber(0, 65535),
    "8080",
    "Connect, gRPC-Web and JSON; 0 takes a free port.",
  ),
  ONCEWARD_MANAGEMENT_PORT: variable(
    wholeNumber(0, 65535),
    "9090",
    "`/livez`, `/readyz`, `/metrics`; 0 takes a free port.",
  ),
  ONCEWARD_LOG_LEVEL: variable(oneOf(LOG_LEVELS), "info", "At `debug`, one line a call."),
  ONCEWARD_POOL_SIZE: variable(
    wholeNumber(2, 200),
    "12",
    "Connections to Postgres for calls, which travel in batches, so that more are rarely faster; administration and background work have 2 more.",
  ),
  ONCEWARD_TENANT_SHARE: variable(
    wholeNumber(0, 10_000),
    "24",
    "Operations of a kind that a tenant may have in statements at once while others call, too, divided by their weights; 0: any number.",
  ),
  ONCEWARD_PGBOUNCER: variable(
    yesOrNo,
    "false",
    "`DATABASE_URL` is PgBouncer in transaction mode: no named statements, no start-up settings.",
  ),
  ONCEWARD_DEFAULT_TIMEOUT: variable(
    milliseconds("1s", "10m"),
    "70s",
    "How long a call may take whose client doesn't say; longer than the longest wait.",
  ),
  ONCEWARD_REQUEST_TIMEOUT: variable(
    milliseconds("1s", "10m"),
    "30s",
    "How long a request may take to arrive whole, from its headers to its last byte.",
  ),
  ONCEWARD_CONNECTION_AGE: variable(
    milliseconds("1s", "7d"),
    "30m",
    "After this, ±10 %, a gRPC connection is asked to leave, so that load spreads to new replicas.",
  ),
  ONCEWARD_CONNECTIONS_PER_ADDRESS: variable(
    wholeNumber(1, 10_000),
    "2000",
    "Connections from one address (of IPv6, from one /64) to each of the callers' ports, which take 10,000 in all. Raise it if a balancer or gateway shows its own address for all callers and opens more.",
  ),
  ONCEWARD_DRAIN_DELAY: variable(
    milliseconds("0s", "5m"),
    "3s",
    "From SIGTERM, when health says NOT_SERVING, until connections are asked to leave.",
  ),
  ONCEWARD_DRAIN_TIMEOUT: variable(
    milliseconds("0s", "5m"),
    "10s",
    "How long calls may then go on before what is left is closed.",
  ),
  ONCEWARD_SWEEP_INTERVAL: variable(
    milliseconds("100ms", "1h"),
    "5s",
    "Between two sweeps of a replica, ±20 %.",
  ),
  ONCEWARD_SWEEP_BATCH: variable(
    wholeNumber(1, 10_000),
    "1000",
    "Records that one statement of the sweep looks at.",
  ),
  ONCEWARD_AUDIT_RETENTION: variable(
    milliseconds("30d", "3650d"),
    "400d",
    "How long audit events are kept; the database refuses to delete younger ones than 30 days.",
  ),
  ONCEWARD_USAGE_FLUSH: variable(
    milliseconds("100ms", "1m"),
    "5s",
    "Between two times that a replica stores what it counted of its tenants' usage, ±20 %.",
  ),
} as const satisfies Record<string, Variable<unknown>>;

type Variables = typeof VARIABLES;

/** The configuration: validated, complete and frozen. Durations are milliseconds. */
export type Config = {
  readonly [Name in keyof Variables]: Variables[Name] extends Variable<infer Value> ? Value : never;
};

/** Everything that is wrong with an environment, at once. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  constructor(problems: readonly string[]) {
    super(`The configuration is not usable:\n${problems.map((problem) => `  - ${problem}`).join("\n")}`);
  }
}

/**
 * Reads the configuration.
 *
 * @throws ConfigError naming every variable that is missing, malformed, unknown (`ONCEWARD_*`) or unsafe.
 */
export function readConfig(env: Readonly<Record<string, string | undefined>>): Config {
  const problems: string[] = [];
  const values: Record<string, unknown> = {};
  for (const [name, { kind, fallback }] of Object.entries<Variable<unknown>>(VARIABLES)) {
    const text = env[name] || fallback;
    if (text === undefined) {
      if (!kind.optional) problems.push(`${name} is required`);
      continue;
    }
    const parsed = kind.parse(text);
    if (parsed.ok) values[name] = parsed.value;
    else problems.push(`${name} must be ${kind.format}`);
  }
  for (const name of Object.keys(env)) {
    if (name.startsWith("ONCEWARD_") && !(name in VARIABLES)) problems.push(`${name} is not known`);
  }
  const config = Object.freeze(values) as Config;
  problems.push(...unsafeCombinations(config), ...incompleteCredentials(config));
  if (problems.length > 0) throw new ConfigError(problems);
  return config;
}

/** What no single variable shows. Those that were malformed are missing here. */
function unsafeCombinations({
  ONCEWARD_ANONYMOUS_TENANT,
  ONCEWARD_HOST,
}: Partial<Config>): readonly string[] {
  if (ONCEWARD_ANONYMOUS_TENANT === undefined || ONCEWARD_HOST === undefined) return [];
  if (isLoopback(ONCEWARD_HOST)) return [];
  return ["ONCEWARD_ANONYMOUS_TENANT lets everybody in: ONCEWARD_HOST must be a loopback address with it"];
}

/** The configuration as it may be shown, as environment variables: every secret is replaced, and what is unset is left out. */
export function redactedConfig(config: Config): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries<Variable<unknown>>(VARIABLES).flatMap(([name, { kind }]) => {
      const value = config[name as keyof Config];
      if (value === undefined) return [];
      return [[name, kind.secret ? "(secret)" : `${value}${kind.unit ?? ""}`]];
    }),
  );
}
