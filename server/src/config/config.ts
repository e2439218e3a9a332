import * as v from "valibot";
import { isLoopback, isTrustedUrl } from "./formats.ts";
import { fileVariable, type ReadSecrets, readSecret, readSecretFiles } from "./secret-files.ts";
import { factsOf, SECRETS, VARIABLES } from "./variables.ts";

const SCHEMA = v.object(VARIABLES);

type Settings = Readonly<v.InferOutput<typeof SCHEMA>>;

/** The configuration: validated, complete and frozen. Durations are in milliseconds. */
export type Config = Settings & {
  /** The files that secrets were read from, by the secrets' names. */
  readonly secretFiles: Readonly<Record<string, string>>;
};

type Environment = Readonly<Record<string, string | undefined>>;
type Name = keyof typeof VARIABLES;

/**
 * Lists every problem of an environment. Its message contains names and formats of variables, never their
 * values.
 */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  constructor(problems: readonly string[]) {
    super(`The configuration is not usable:\n${problems.map((problem) => `  - ${problem}`).join("\n")}`);
  }
}

/**
 * Reads the configuration from environment variables, and secrets also from the files that variables such as
 * `DATABASE_URL_FILE` name. An empty variable counts as unset.
 *
 * @throws ConfigError naming every variable that is missing, malformed, unknown (`ONCEWARD_*`) or unsafe, and
 * every file that cannot be used.
 */
export function readConfig(env: Environment): Config {
  const secrets = readSecretFiles(env, SECRETS);
  const set = Object.fromEntries(Object.entries(secrets.env).filter(([, text]) => Boolean(text)));
  const result = v.safeParse(SCHEMA, set);
  const malformed = (result.issues ?? []).flatMap(({ path }) =>
    describeIssue(path?.[0].key as Name, set, secrets),
  );
  const unknown = Object.keys(secrets.env).filter(
    (name) => name.startsWith("ONCEWARD_") && !(name in VARIABLES),
  );
  const problems = [
    ...secrets.problems,
    ...new Set(malformed),
    ...unknown.map((name) => `${name} is not known`),
    ...openToAll(set),
    ...incompleteGroups(set),
    ...unusableIssuer(set),
  ];
  if (result.success) problems.push(...unknownProtocols(result.output));
  if (!result.success || problems.length > 0) throw new ConfigError(problems);
  return Object.freeze({ ...result.output, secretFiles: secrets.files });
}

/** The secrets that databases may change while a server runs. */
const CHANGING = ["DATABASE_URL", "DATABASE_DIRECT_URL", "REDIS_URL"] as const;

/**
 * Returns the configuration with the URLs of databases as their files have them now: for each new connection,
 * because passwords rotate. A file that cannot be used now leaves the value of the start.
 */
export function withCurrentUrls(config: Config): Config {
  const urls = CHANGING.flatMap((name) => {
    const file = config.secretFiles[name];
    const text = file === undefined ? undefined : readSecret(file).text;
    const isUsable = text !== undefined && v.safeParse(VARIABLES[name], text).success;
    return isUsable ? [[name, text] as const] : [];
  });
  return urls.length === 0 ? config : { ...config, ...Object.fromEntries(urls) };
}

/**
 * Returns the environment with secrets in place of the variables that name their files.
 *
 * @throws ConfigError naming every file that cannot be used.
 */
export function withSecretFiles(env: Environment): Environment {
  const { env: resolved, problems } = readSecretFiles(env, SECRETS);
  if (problems.length > 0) throw new ConfigError(problems);
  return resolved;
}

/** Returns nothing for a secret whose file was not readable: the file's own problem is reported. */
function describeIssue(name: Name, set: Environment, { files }: ReadSecrets): readonly string[] {
  const isSet = set[name] !== undefined;
  if (name in files) {
    return isSet ? [`the contents of ${fileVariable(name)} must be ${factsOf(VARIABLES[name]).format}`] : [];
  }
  return [isSet ? `${name} must be ${factsOf(VARIABLES[name]).format}` : `${name} is required`];
}

function openToAll({
  ONCEWARD_ANONYMOUS_TENANT: tenant,
  ONCEWARD_HOST: host,
}: Environment): readonly string[] {
  if (tenant === undefined || isLoopback(host ?? VARIABLES.ONCEWARD_HOST.default)) return [];
  return ["ONCEWARD_ANONYMOUS_TENANT lets everybody in: ONCEWARD_HOST must be a loopback address with it"];
}

/** The console asks the issuer for its endpoints by its name. A token's issuer may be any text. */
function unusableIssuer(set: Environment): readonly string[] {
  const { ONCEWARD_JWT_ISSUER: issuer, ONCEWARD_CONSOLE_OIDC_SCOPES: scopes = "openid" } = set;
  if (set.ONCEWARD_CONSOLE_OIDC_CLIENT_ID === undefined) return [];
  const problems: string[] = [];
  if (issuer !== undefined && !isTrustedUrl(issuer))
    problems.push("ONCEWARD_JWT_ISSUER must be an https URL for sign-in at the issuer");
  if (!scopes.split(" ").includes("openid"))
    problems.push("ONCEWARD_CONSOLE_OIDC_SCOPES must have openid among its scopes");
  return problems;
}

/** Returns whether tracing is on: an endpoint or the exporter is set, and nothing disables it. An empty variable counts as unset. */
export function isTracingOn(config: Partial<Settings>): boolean {
  if (config.OTEL_SDK_DISABLED === true || config.OTEL_TRACES_EXPORTER === "none") return false;
  const endpoint = config.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? config.OTEL_EXPORTER_OTLP_ENDPOINT;
  return config.OTEL_TRACES_EXPORTER === "otlp" || endpoint !== undefined;
}

/** Returns whether metrics are exported. An endpoint for all signals is not enough: collectors of traces refuse metrics. */
export function areMetricsExported(config: Partial<Settings>): boolean {
  if (config.OTEL_SDK_DISABLED === true || config.OTEL_METRICS_EXPORTER === "none") return false;
  return config.OTEL_METRICS_EXPORTER === "otlp" || config.OTEL_EXPORTER_OTLP_METRICS_ENDPOINT !== undefined;
}

/** Other protocols of OpenTelemetry would be ignored by the exporters, which have only this one. */
function unknownProtocols(config: Settings): readonly string[] {
  const exported = [
    ...(isTracingOn(config) ? (["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"] as const) : []),
    ...(areMetricsExported(config) ? (["OTEL_EXPORTER_OTLP_METRICS_PROTOCOL"] as const) : []),
  ];
  const read = exported.map((own) => (config[own] === undefined ? "OTEL_EXPORTER_OTLP_PROTOCOL" : own));
  const unknown = read.filter((name) => (config[name] ?? "http/protobuf") !== "http/protobuf");
  return [...new Set(unknown)].map((name) => `${name} must be http/protobuf`);
}

/**
 * All three are required: without an audience, the server would accept the issuer's tokens for other
 * services.
 */
const TOKENS: readonly Name[] = ["ONCEWARD_JWT_ISSUER", "ONCEWARD_JWT_AUDIENCE", "ONCEWARD_JWT_JWKS_URL"];

/** Returns the variables that others need and that are unset. */
function incompleteGroups(set: Environment): readonly string[] {
  const problems: string[] = [];
  const need = (given: readonly Name[], needed: readonly Name[], why: string) => {
    if (!given.some((name) => set[name] !== undefined)) return;
    for (const name of needed) if (set[name] === undefined) problems.push(`${name} is required ${why}`);
  };
  need(TOKENS, TOKENS, `for tokens: ${TOKENS.join(", ")} go together`);
  need(["ONCEWARD_CONSOLE_OIDC_CLIENT_ID"], TOKENS, "for sign-in at the issuer");
  need(
    ["ONCEWARD_CONSOLE_OIDC_CLIENT_SECRET", "ONCEWARD_CONSOLE_OIDC_SCOPES"],
    ["ONCEWARD_CONSOLE_OIDC_CLIENT_ID"],
    "for sign-in at the issuer",
  );
  need(["ONCEWARD_TLS_KEY", "ONCEWARD_TLS_CLIENT_CA"], ["ONCEWARD_TLS_CERT"], "for TLS");
  need(["ONCEWARD_TLS_CERT", "ONCEWARD_TLS_CLIENT_CA"], ["ONCEWARD_TLS_KEY"], "for TLS");
  return problems;
}

/**
 * Returns the variables that are set or have a default, as text that may be printed: `(secret)` replaces
 * every secret.
 */
export function redactedConfig(config: Config): Readonly<Record<string, string>> {
  return Object.fromEntries(
    (Object.keys(VARIABLES) as Name[]).flatMap((name) => {
      const value = config[name];
      if (value === undefined) return [];
      const { secret, unit = "" } = factsOf(VARIABLES[name]);
      return [[name, secret ? "(secret)" : `${value}${unit}`]];
    }),
  );
}
