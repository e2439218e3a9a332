import * as v from "valibot";
import { isLoopback } from "./formats.ts";
import { factsOf, VARIABLES } from "./variables.ts";

const SCHEMA = v.object(VARIABLES);

/** The configuration: validated, complete and frozen. Durations are in milliseconds. */
export type Config = Readonly<v.InferOutput<typeof SCHEMA>>;

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
 * Reads the configuration from environment variables. An empty variable counts as unset.
 *
 * @throws ConfigError naming every variable that is missing, malformed, unknown (`ONCEWARD_*`) or unsafe.
 */
export function readConfig(env: Environment): Config {
  const set = Object.fromEntries(Object.entries(env).filter(([, text]) => Boolean(text)));
  const result = v.safeParse(SCHEMA, set);
  const malformed = (result.issues ?? []).map(({ path }) => describeIssue(path?.[0].key as Name, set));
  const problems = [...new Set(malformed), ...unknownNames(env), ...openToAll(set), ...incompleteGroups(set)];
  if (!result.success || problems.length > 0) throw new ConfigError(problems);
  return Object.freeze(result.output);
}

function describeIssue(name: Name, set: Environment): string {
  return set[name] === undefined
    ? `${name} is required`
    : `${name} must be ${factsOf(VARIABLES[name]).format}`;
}

function unknownNames(env: Environment): readonly string[] {
  const unknown = Object.keys(env).filter((name) => name.startsWith("ONCEWARD_") && !(name in VARIABLES));
  return unknown.map((name) => `${name} is not known`);
}

function openToAll({
  ONCEWARD_ANONYMOUS_TENANT: tenant,
  ONCEWARD_HOST: host,
}: Environment): readonly string[] {
  if (tenant === undefined || isLoopback(host ?? VARIABLES.ONCEWARD_HOST.default)) return [];
  return ["ONCEWARD_ANONYMOUS_TENANT lets everybody in: ONCEWARD_HOST must be a loopback address with it"];
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
