import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { describeWithPrograms, runProgram } from "../helpers/deploy/programs.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** Returns the services of compose files as Compose merges them; no container engine is needed. */
async function servicesOf(...files: string[]): Promise<Record<string, unknown>> {
  const given = files.flatMap((file) => ["--file", `${ROOT}${file}`]);
  const { exit, output } = await runProgram("docker-compose", ...given, "config");
  expect({ exit, output }).toMatchObject({ exit: 0 });
  return parse(output).services;
}

describeWithPrograms(["docker-compose"], "Compose", () => {
  test("accepts the services alone, with observability, TLS, encryption, and the HTTP proxy", async () => {
    const alone = await servicesOf("docker-compose.yml");
    const observed = await servicesOf("docker-compose.yml", "deploy/compose.observability.yml");
    expect(Object.keys(observed)).toEqual(
      expect.arrayContaining([...Object.keys(alone), "prometheus", "alertmanager", "grafana", "tempo"]),
    );
    const traces = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://tempo:4318" };
    expect(observed["replica-1"]).toMatchObject({ environment: traces });
    const withTls = await servicesOf("docker-compose.yml", "deploy/compose.tls.yml");
    const certificate = { BALANCER_CERTIFICATE: "/run/secrets/balancer_certificate" };
    expect(withTls.balancer).toMatchObject({ environment: certificate });
    const encrypting = await servicesOf("docker-compose.yml", "deploy/compose.encryption.yml");
    for (const name of ["replica-1", "replica-2"]) {
      expect(encrypting[name]).toMatchObject({
        environment: {
          ONCEWARD_ENCRYPTION_KEYS_FILE: "/run/secrets/encryption_keys",
          ONCEWARD_API_KEY_PEPPER_FILE: "/run/secrets/api_key_pepper",
        },
        secrets: expect.arrayContaining(
          ["api_key_pepper", "encryption_keys"].map((source) => expect.objectContaining({ source })),
        ),
      });
    }
    const { "http-proxy": proxy } = await servicesOf("docker-compose.yml", "deploy/compose.http-proxy.yml");
    expect(proxy).toMatchObject({
      build: { dockerfile: "deploy/Dockerfile", target: "cli" },
      environment: { UPSTREAM: "http://example:3000" },
      secrets: [expect.objectContaining({ source: "proxy_key" })],
    });
  });
});
