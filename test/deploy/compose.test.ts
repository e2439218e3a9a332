import { execFile, spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { parse } from "yaml";
import { describeWithPrograms, runProgram } from "../support/deploy/programs.ts";
import { startProxyCommand } from "../support/deploy/proxy-command.ts";
import { freePort } from "../support/redis/redis.ts";
import { createTenant } from "../support/servers/tenants.ts";
import { useServer } from "../support/servers/use-server.ts";

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** A service as Compose prints it: with `$$` for `$`. */
interface Service {
  readonly entrypoint: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** `SOURCE:TARGET:ro`. */
  readonly volumes: readonly string[];
  readonly healthcheck: { readonly test: readonly string[] };
}

/** Returns the services of compose files as Compose merges them; no container engine is needed. */
async function servicesOf(...files: string[]): Promise<Record<string, Service>> {
  const given = files.flatMap((file) => ["--file", `${ROOT}${file}`]);
  const { exit, output } = await runProgram("docker-compose", ...given, "config");
  expect({ exit, output }).toMatchObject({ exit: 0 });
  return parse(output).services;
}

describeWithPrograms(["docker-compose"], "Compose", () => {
  const world = useServer();

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

  test("starts the HTTP proxy and its example by command lines that guard a charge", async () => {
    const services = await servicesOf("docker-compose.yml", "deploy/compose.http-proxy.yml");
    const { example, "http-proxy": proxy } = services as Record<"example" | "http-proxy", Service>;
    const [program, ...args] = example.entrypoint;
    const [source = "", target] = example.volumes[0]?.split(":") ?? [];
    expect([program, args]).toEqual(["node", [target]]);
    const port = await freePort();
    const child = spawn(process.execPath, [source, String(port), "127.0.0.1"]);
    onTestFinished(() => void child.kill());

    const { apiKey } = await createTenant(world.database);
    const [routesFile = "", mountedRoutes = ""] = proxy.volumes[0]?.split(":") ?? [];
    const { port: proxyPort, managementPort } = await startProxyCommand({
      command: proxy.entrypoint.map((part) => part.replaceAll("$$", "$")),
      env: { UPSTREAM: `http://127.0.0.1:${port}` },
      files: {
        "/run/secrets/proxy_key": apiKey,
        [mountedRoutes]: await readFile(routesFile, "utf8"),
      },
      addresses: { "http://balancer:50051": `http://127.0.0.1:${world.server.grpcPort}` },
    });
    const [, , ...probe] = proxy.healthcheck.test.map((part) => part.replace("9465", String(managementPort)));
    await run(process.execPath, probe);

    const url = `http://127.0.0.1:${proxyPort}/charges`;
    const headers = { "x-account": "me", "idempotency-key": '"order-1"' };
    const charge = () => fetch(url, { method: "POST", headers, body: '{"amount": 1}' });
    // Until the example listens, the proxy answers 502.
    await expect.poll(async () => (await charge()).status).toBe(201);
    expect((await charge()).headers.get("idempotency-replayed")).toBe("true");
    expect(await (await fetch(url)).json()).toEqual(['{"amount": 1}']);
  });
});
