import { safeParse } from "valibot";
import { describe, expect, test } from "vitest";
import { formatApiKey, generateApiKey } from "../access/api-key.ts";
import { MAX_WAIT_MS } from "../domain/limits.ts";
import { areMetricsExported, ConfigError, isTracingOn, readConfig, redactedConfig } from "./config.ts";
import { factsOf, VARIABLES, type VariableSchema } from "./variables.ts";

const REQUIRED = {
  DATABASE_URL: "postgresql://someone:hidden@db:5432/onceward",
  ONCEWARD_API_KEY_PEPPER: "hidden pepper, 0123456789 0123456789",
};

const TOKENS = {
  ONCEWARD_JWT_ISSUER: "https://issuer.example",
  ONCEWARD_JWT_AUDIENCE: "onceward",
  ONCEWARD_JWT_JWKS_URL: "https://issuer.example/keys",
};

/** Returns the names of the variables that the error reports, one for each problem. */
function problemsOf(env: Readonly<Record<string, string | undefined>>): readonly string[] {
  try {
    readConfig({ ...REQUIRED, ...env });
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const [, ...lines] = error.message.split("\n");
    return lines.map((line) => line.replace(/^ {2}- (\w+).*$/, "$1"));
  }
}

/** Returns whether an environment turns tracing on. */
function tracesWith(env: Readonly<Record<string, string>>): boolean {
  return isTracingOn(readConfig({ ...REQUIRED, ...env }));
}

describe("tracing", () => {
  const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318" };

  test("is on with an endpoint or an exporter, unless it is disabled", () => {
    expect(tracesWith({})).toBe(false);
    expect(tracesWith({ OTEL_SERVICE_NAME: "onceward" })).toBe(false);
    expect(tracesWith(endpoint)).toBe(true);
    expect(tracesWith({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://collector:4318/v1/traces" })).toBe(true);
    expect(tracesWith({ OTEL_TRACES_EXPORTER: "otlp" })).toBe(true);
    expect(tracesWith({ ...endpoint, OTEL_TRACES_EXPORTER: "none" })).toBe(false);
    expect(tracesWith({ ...endpoint, OTEL_SDK_DISABLED: "true" })).toBe(false);
  });

  test("refuses another protocol than http/protobuf, but only while it is on", () => {
    const grpc = { OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" };
    expect(problemsOf({ ...endpoint, ...grpc })).toEqual(["OTEL_EXPORTER_OTLP_PROTOCOL"]);
    expect(problemsOf(grpc)).toEqual([]);
    const traces = { OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: "http/protobuf" };
    expect(problemsOf({ ...endpoint, ...grpc, ...traces })).toEqual([]);
    expect(problemsOf({ ...endpoint, OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: "http/json" })).toEqual([
      "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
    ]);
  });

  test("exports metrics with an endpoint or an exporter of their own, unless it is disabled", () => {
    const own = { OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: "http://collector:4318/v1/metrics" };
    const on = [own, { ...endpoint, OTEL_METRICS_EXPORTER: "otlp" }];
    const off = [
      {},
      endpoint,
      { ...own, OTEL_METRICS_EXPORTER: "none" },
      { ...own, OTEL_SDK_DISABLED: "true" },
    ];
    const exported = [...on, ...off].map((env) => areMetricsExported(readConfig({ ...REQUIRED, ...env })));
    expect(exported).toEqual([true, true, false, false, false, false]);
    expect(tracesWith(own)).toBe(false);
    const protocol = { OTEL_EXPORTER_OTLP_METRICS_PROTOCOL: "grpc" };
    expect(problemsOf({ ...own, ...protocol })).toEqual(Object.keys(protocol));
  });

  test("refuses an exporter that it does not have, and an endpoint that is not a URL", () => {
    expect(problemsOf({ OTEL_TRACES_EXPORTER: "zipkin" })).toEqual(["OTEL_TRACES_EXPORTER"]);
    expect(problemsOf({ OTEL_EXPORTER_OTLP_ENDPOINT: "collector:4317" })).toEqual([
      "OTEL_EXPORTER_OTLP_ENDPOINT",
    ]);
  });

  test("does not print an endpoint, which may have a password", () => {
    const config = readConfig({ ...REQUIRED, OTEL_EXPORTER_OTLP_ENDPOINT: "http://user:hidden@collector" });
    expect(redactedConfig(config).OTEL_EXPORTER_OTLP_ENDPOINT).toBe("(secret)");
  });
});

describe("the configuration", () => {
  test("requires only the database and the pepper", () => {
    const config = readConfig(REQUIRED);
    expect(config).toMatchObject({ ...REQUIRED, ONCEWARD_HOST: "127.0.0.1", ONCEWARD_GRPC_PORT: 50_051 });
    expect(Object.isFrozen(config)).toBe(true);
    expect(problemsOf({ DATABASE_URL: undefined, ONCEWARD_API_KEY_PEPPER: undefined })).toEqual([
      "DATABASE_URL",
      "ONCEWARD_API_KEY_PEPPER",
    ]);
  });

  test("treats an empty variable as unset", () => {
    expect(readConfig({ ...REQUIRED, ONCEWARD_GRPC_PORT: "" }).ONCEWARD_GRPC_PORT).toBe(50_051);
    expect(problemsOf({ DATABASE_URL: "" })).toEqual(["DATABASE_URL"]);
  });

  test("has valid defaults", () => {
    for (const [name, schema] of Object.entries<VariableSchema>(VARIABLES)) {
      const { fallback } = factsOf(schema);
      if (fallback !== undefined) expect([name, safeParse(schema, fallback).success]).toEqual([name, true]);
    }
  });

  test("lets a call without a deadline wait for as long as a claim may", () => {
    expect(readConfig(REQUIRED).ONCEWARD_DEFAULT_TIMEOUT).toBeGreaterThan(MAX_WAIT_MS);
  });

  test("has a format and a description for every variable", () => {
    for (const [name, schema] of Object.entries<VariableSchema>(VARIABLES)) {
      const { format, description } = factsOf(schema);
      expect([name, format, description]).toEqual([
        name,
        expect.stringMatching(/./),
        expect.stringMatching(/./),
      ]);
    }
  });

  test("refuses a console whose address or issuer could not be trusted", () => {
    const origin = (text: string) => problemsOf({ ONCEWARD_CONSOLE_ORIGIN: text });
    const client = { ONCEWARD_CONSOLE_OIDC_CLIENT_ID: "console" };
    for (const text of ["https://onceward.example", "https://a.example:8443/", "http://localhost:8080"])
      expect([text, origin(text)]).toEqual([text, []]);
    for (const text of [
      "onceward.example",
      "http://a.example",
      "https://a.example/console/",
      "https://u:p@a.example",
    ])
      expect([text, origin(text)]).toEqual([text, ["ONCEWARD_CONSOLE_ORIGIN"]]);
    expect(problemsOf({ ...TOKENS, ...client })).toEqual([]);
    expect(problemsOf(client)).toEqual(Object.keys(TOKENS));
    expect(problemsOf({ ...TOKENS, ...client, ONCEWARD_JWT_ISSUER: "http://issuer.example" })).toEqual([
      "ONCEWARD_JWT_ISSUER",
    ]);
    expect(problemsOf({ ...TOKENS, ...client, ONCEWARD_CONSOLE_OIDC_SCOPES: "profile" })).toEqual([
      "ONCEWARD_CONSOLE_OIDC_SCOPES",
    ]);
    expect(problemsOf({ ONCEWARD_CONSOLE_OIDC_CLIENT_SECRET: "hidden" })).toEqual([
      "ONCEWARD_CONSOLE_OIDC_CLIENT_ID",
    ]);
  });

  test("names the limits of a value that is out of them", () => {
    const read = () => readConfig({ ...REQUIRED, ONCEWARD_POOL_SIZE: "201", ONCEWARD_DRAIN_DELAY: "6m" });
    expect(read).toThrow("- ONCEWARD_POOL_SIZE must be a whole number from 2 to 200\n");
    expect(read).toThrow(
      "- ONCEWARD_DRAIN_DELAY must be a duration from 0s to 5m, such as 250ms, 3s, 10m or 1h",
    );
  });

  test("reports every invalid and unknown variable in one error", () => {
    expect(
      problemsOf({
        ONCEWARD_GRPC_PORT: "65536",
        ONCEWARD_PGBOUNCER: "yes",
        ONCEWARD_DRAIN_DELAY: "3",
        ONCEWARD_LOG_LEVEL: "loud",
        ONCEWARD_OPERATOR_KEY: "not a key",
        ONCEWARD_GPRC_PORT: "1",
      }).toSorted(),
    ).toEqual([
      "ONCEWARD_DRAIN_DELAY",
      "ONCEWARD_GPRC_PORT",
      "ONCEWARD_GRPC_PORT",
      "ONCEWARD_LOG_LEVEL",
      "ONCEWARD_OPERATOR_KEY",
      "ONCEWARD_PGBOUNCER",
    ]);
  });

  test("ignores variables of other programs", () => {
    expect(problemsOf({ PATH: "/bin", DATABASE_POOL: "7" })).toEqual([]);
  });

  test("accepts only whole numbers within their bounds", () => {
    for (const size of ["1", "201", "-2", "2.5", "0x10", "1e2", " 5", "12345678901"]) {
      expect(problemsOf({ ONCEWARD_POOL_SIZE: size })).toEqual(["ONCEWARD_POOL_SIZE"]);
    }
    expect(readConfig({ ...REQUIRED, ONCEWARD_POOL_SIZE: "200" }).ONCEWARD_POOL_SIZE).toBe(200);
  });

  test("accepts durations in every unit, only within their bounds", () => {
    const age = (text: string) => readConfig({ ...REQUIRED, ONCEWARD_CONNECTION_AGE: text });
    const read = ["1500ms", "2s", "3m", "4h", "7d"].map((text) => age(text).ONCEWARD_CONNECTION_AGE);
    expect(read).toEqual([1500, 2000, 180_000, 14_400_000, 604_800_000]);
    for (const text of ["999ms", "8d", "1", "1.5s", "s", "1 s", "-1s", "1S"]) {
      expect(problemsOf({ ONCEWARD_CONNECTION_AGE: text })).toEqual(["ONCEWARD_CONNECTION_AGE"]);
    }
  });

  test("refuses a pepper that is short enough to guess", () => {
    expect(problemsOf({ ONCEWARD_API_KEY_PEPPER: "x".repeat(31) })).toEqual(["ONCEWARD_API_KEY_PEPPER"]);
  });

  test("accepts an anonymous tenant only on a loopback address", () => {
    const anonymous = { ONCEWARD_ANONYMOUS_TENANT: "dev" };
    for (const host of ["127.0.0.1", "127.8.0.1", "localhost", "::1"]) {
      expect(problemsOf({ ...anonymous, ONCEWARD_HOST: host })).toEqual([]);
    }
    for (const host of ["0.0.0.0", "::", "10.0.0.1", "127.0.0.1.example.com", "localhost.example.com"]) {
      expect(problemsOf({ ...anonymous, ONCEWARD_HOST: host })).toEqual(["ONCEWARD_ANONYMOUS_TENANT"]);
    }
  });

  test("requires issuer, audience and JWKS URL together", () => {
    expect(problemsOf(TOKENS)).toEqual([]);
    for (const name of Object.keys(TOKENS)) {
      expect(problemsOf({ ...TOKENS, [name]: "" })).toEqual([name]);
      expect(problemsOf({ [name]: TOKENS[name as keyof typeof TOKENS] })).toHaveLength(2);
    }
  });

  test("accepts a JWKS URL only over https or loopback http, without a user", () => {
    for (const url of [
      "https://a/keys",
      "http://127.0.0.1:1/keys",
      "http://[::1]/keys",
      "http://localhost",
    ]) {
      expect(problemsOf({ ...TOKENS, ONCEWARD_JWT_JWKS_URL: url })).toEqual([]);
    }
    for (const url of ["http://issuer/keys", "https://user:hidden@a/keys", "file:///keys", "keys"]) {
      expect(problemsOf({ ...TOKENS, ONCEWARD_JWT_JWKS_URL: url })).toContain("ONCEWARD_JWT_JWKS_URL");
    }
  });

  test("accepts only signature algorithms with a private key", () => {
    const read = (text: string) => readConfig({ ...REQUIRED, ONCEWARD_JWT_ALGORITHMS: text });
    expect(read("ES256, RS256").ONCEWARD_JWT_ALGORITHMS).toEqual(["RS256", "ES256"]);
    for (const text of ["HS256", "none", "RS256,HS256", "RS256,none", "rs256", "RS256,", ","]) {
      expect(problemsOf({ ONCEWARD_JWT_ALGORITHMS: text })).toEqual(["ONCEWARD_JWT_ALGORITHMS"]);
    }
  });

  test("requires TLS certificate and key together, and both for clients' authorities", () => {
    const [cert, key, clientCa] = [
      "ONCEWARD_TLS_CERT",
      "ONCEWARD_TLS_KEY",
      "ONCEWARD_TLS_CLIENT_CA",
    ] as const;
    expect(problemsOf({ [cert]: "cert.pem", [key]: "key.pem" })).toEqual([]);
    expect(problemsOf({ [cert]: "cert.pem", [key]: "key.pem", [clientCa]: "ca.pem" })).toEqual([]);
    expect(problemsOf({ [cert]: "cert.pem" })).toEqual([key]);
    expect(problemsOf({ [key]: "key.pem" })).toEqual([cert]);
    expect(problemsOf({ [clientCa]: "ca.pem" })).toEqual([cert, key]);
  });

  test("never prints a secret, neither in the redacted configuration nor in an error", () => {
    const key = generateApiKey();
    const secrets = { ...REQUIRED, ONCEWARD_OPERATOR_KEY: formatApiKey(key) };
    const shown = JSON.stringify(redactedConfig(readConfig(secrets)));
    expect(shown).not.toContain("hidden");
    expect(shown).not.toContain(key.secret);
    expect(shown).toContain('"ONCEWARD_HOST":"127.0.0.1"');
    const wrong = () => readConfig({ ...secrets, DATABASE_URL: "hidden", ONCEWARD_OPERATOR_KEY: "hidden" });
    expect(wrong).toThrow(ConfigError);
    expect(wrong).not.toThrow("hidden");
  });
});
