import { describe, expect, test } from "vitest";
import { formatApiKey, generateApiKey } from "../auth/api-key.ts";
import { ConfigError, readConfig, redactedConfig, VARIABLES } from "./config.ts";

const REQUIRED = {
  DATABASE_URL: "postgresql://someone:hidden@db:5432/onceward",
  ONCEWARD_API_KEY_PEPPER: "hidden pepper, 0123456789 0123456789",
};

const TOKENS = {
  ONCEWARD_JWT_ISSUER: "https://issuer.example",
  ONCEWARD_JWT_AUDIENCE: "onceward",
  ONCEWARD_JWT_JWKS_URL: "https://issuer.example/keys",
};

/** The names of the variables that a problem is told of. */
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

describe("the configuration", () => {
  test("needs nothing but the database and the pepper", () => {
    const config = readConfig(REQUIRED);
    expect(config).toMatchObject({ ...REQUIRED, ONCEWARD_HOST: "127.0.0.1", ONCEWARD_GRPC_PORT: 50_051 });
    expect(Object.isFrozen(config)).toBe(true);
    expect(problemsOf({ DATABASE_URL: undefined, ONCEWARD_API_KEY_PEPPER: undefined })).toEqual([
      "DATABASE_URL",
      "ONCEWARD_API_KEY_PEPPER",
    ]);
  });

  test("takes a variable that is empty for one that is unset", () => {
    expect(readConfig({ ...REQUIRED, ONCEWARD_GRPC_PORT: "" }).ONCEWARD_GRPC_PORT).toBe(50_051);
    expect(problemsOf({ DATABASE_URL: "" })).toEqual(["DATABASE_URL"]);
  });

  test("has defaults that it would take itself", () => {
    for (const [name, { kind, fallback }] of Object.entries(VARIABLES)) {
      if (fallback !== undefined) expect([name, kind.parse(fallback).ok]).toEqual([name, true]);
    }
  });

  test("names everything that is wrong at once", () => {
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

  test("leaves variables alone that are not its own", () => {
    expect(problemsOf({ PATH: "/bin", DATABASE_POOL: "7" })).toEqual([]);
  });

  test("takes whole numbers within their bounds", () => {
    for (const size of ["1", "201", "-2", "2.5", "0x10", "1e2", " 5", "12345678901"]) {
      expect(problemsOf({ ONCEWARD_POOL_SIZE: size })).toEqual(["ONCEWARD_POOL_SIZE"]);
    }
    expect(readConfig({ ...REQUIRED, ONCEWARD_POOL_SIZE: "200" }).ONCEWARD_POOL_SIZE).toBe(200);
  });

  test("takes durations in every unit, within their bounds", () => {
    const age = (text: string) => readConfig({ ...REQUIRED, ONCEWARD_CONNECTION_AGE: text });
    const read = ["1500ms", "2s", "3m", "4h", "7d"].map((text) => age(text).ONCEWARD_CONNECTION_AGE);
    expect(read).toEqual([1500, 2000, 180_000, 14_400_000, 604_800_000]);
    for (const text of ["999ms", "8d", "1", "1.5s", "s", "1 s", "-1s", "1S"]) {
      expect(problemsOf({ ONCEWARD_CONNECTION_AGE: text })).toEqual(["ONCEWARD_CONNECTION_AGE"]);
    }
  });

  test("takes a pepper that is hard to guess only", () => {
    expect(problemsOf({ ONCEWARD_API_KEY_PEPPER: "x".repeat(31) })).toEqual(["ONCEWARD_API_KEY_PEPPER"]);
  });

  test("lets everybody in on a loopback address only", () => {
    const anonymous = { ONCEWARD_ANONYMOUS_TENANT: "dev" };
    for (const host of ["127.0.0.1", "127.8.0.1", "localhost", "::1"]) {
      expect(problemsOf({ ...anonymous, ONCEWARD_HOST: host })).toEqual([]);
    }
    for (const host of ["0.0.0.0", "::", "10.0.0.1", "127.0.0.1.example.com", "localhost.example.com"]) {
      expect(problemsOf({ ...anonymous, ONCEWARD_HOST: host })).toEqual(["ONCEWARD_ANONYMOUS_TENANT"]);
    }
  });

  test("takes tokens with an issuer, an audience and its keys, or not at all", () => {
    expect(problemsOf(TOKENS)).toEqual([]);
    for (const name of Object.keys(TOKENS)) {
      expect(problemsOf({ ...TOKENS, [name]: "" })).toEqual([name]);
      expect(problemsOf({ [name]: TOKENS[name as keyof typeof TOKENS] })).toHaveLength(2);
    }
  });

  test("takes the keys of an issuer from where nobody else can put them", () => {
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

  test("takes signatures only that nobody but the issuer can make", () => {
    const read = (text: string) => readConfig({ ...REQUIRED, ONCEWARD_JWT_ALGORITHMS: text });
    expect(read("ES256, RS256").ONCEWARD_JWT_ALGORITHMS).toEqual(["RS256", "ES256"]);
    for (const text of ["HS256", "none", "RS256,HS256", "RS256,none", "rs256", "RS256,", ","]) {
      expect(problemsOf({ ONCEWARD_JWT_ALGORITHMS: text })).toEqual(["ONCEWARD_JWT_ALGORITHMS"]);
    }
  });

  test("takes a certificate with its key, and clients' authorities with a certificate", () => {
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

  test("never says a secret, where it is shown and where it is wrong", () => {
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
