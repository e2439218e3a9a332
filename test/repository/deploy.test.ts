import { execFile } from "node:child_process";
import { copyFile, mkdir, mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { createServer, type RequestListener, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { parse } from "yaml";
import { readConfig } from "../../server/src/config/config.ts";
import { VARIABLES } from "../../server/src/config/variables.ts";
import { makeCertificate, tlsSettings } from "../helpers/network/certificates.ts";

const run = promisify(execFile);
const TIMEOUT_MS = 20_000;

interface Service {
  readonly environment?: Readonly<Record<string, string>>;
  readonly command?: readonly string[];
  readonly ports?: readonly string[];
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
  readonly stop_grace_period?: string;
  readonly build?: { readonly dockerfile: string };
}

const compose: string = await read("docker-compose.yml");
const services: Readonly<Record<string, Service>> = parse(compose, { merge: true }).services;
const ours = Object.entries(services).filter(([, { build }]) => build !== undefined);
const dockerfile = await read("deploy/Dockerfile");
const imageEnv = Object.fromEntries(
  [...dockerfile.matchAll(/^ENV (\w+)=(\S+)$/gm)].map(([, name = "", value]) => [name, value]),
);

test("two replicas wait for one migration, and the migration for Postgres", () => {
  expect(ours.map(([name, { command }]) => [name, command])).toEqual([
    ["migrate", ["migrate"]],
    ["replica-1", ["serve"]],
    ["replica-2", ["serve"]],
  ]);
  for (const name of ["replica-1", "replica-2"]) {
    expect(services[name]?.depends_on).toMatchObject({
      migrate: { condition: "service_completed_successfully" },
    });
  }
  expect(services.migrate?.depends_on).toEqual({ postgres: { condition: "service_healthy" } });
});

test.each(ours)("the settings of %s are known and valid", (_, { environment = {} }) => {
  expect(Object.keys(environment).filter((name) => !(name in VARIABLES))).toEqual([]);
  const settings = Object.fromEntries(
    Object.entries(environment).map(([name, text]) => [name, filledIn(text)]),
  );
  const config = readConfig({ ...imageEnv, ...settings });
  expect(config.ONCEWARD_HOST).toBe("0.0.0.0");
});

test("the image exposes the server's default ports", () => {
  const exposed = /^EXPOSE (.*)$/m.exec(dockerfile)?.[1]?.split(" ");
  expect(exposed).toEqual(DEFAULT_PORTS);
});

test("each replica's ports are published on loopback, none twice", () => {
  const published = ours.flatMap(([, { ports = [] }]) => ports.map((port) => port.split(":")));
  expect(published.map(([host]) => host)).toEqual(Array(6).fill("127.0.0.1"));
  expect(new Set(published.map(([, outside]) => outside)).size).toBe(6);
  expect(published.map(([, , inside]) => inside)).toEqual([...DEFAULT_PORTS, ...DEFAULT_PORTS]);
});

test("a replica's grace period is longer than its drain", () => {
  const config = readConfig({
    DATABASE_URL: "postgresql://host/database",
    ONCEWARD_API_KEY_PEPPER: "x".repeat(32),
  });
  const drainMs = config.ONCEWARD_DRAIN_DELAY + config.ONCEWARD_DRAIN_TIMEOUT;
  expect(Number.parseInt(services["replica-1"]?.stop_grace_period ?? "", 10) * 1000).toBeGreaterThan(drainMs);
});

test("no secret has a default: each is a variable that is required", () => {
  const references = [...compose.matchAll(/\$\{(\w+)(:?[^}]*)\}/g)].filter(([, name = ""]) =>
    /PASSWORD|PEPPER/.test(name),
  );
  expect(references.length).toBeGreaterThan(0);
  for (const [, , otherwise] of references)
    expect(otherwise).toBe(":?make .env first, by sh deploy/make-env.sh");
  expect(compose).not.toMatch(/^\s*\w*(PASSWORD|PEPPER|SECRET)\w*: *[^$\s]/m);
});

test("generated secrets are valid, readable by their owner only, different each time and never replaced", async () => {
  const [first, second] = [await makeEnv(), await makeEnv()];
  expect(first.text).toMatch(/^POSTGRES_PASSWORD=[0-9a-f]{64}\nONCEWARD_API_KEY_PEPPER=[0-9a-f]{64}\n$/);
  expect(second.text).not.toBe(first.text);
  expect(first.mode).toBe(0o600);
  await expect(first.again()).rejects.toThrow();
  expect(await first.read()).toBe(first.text);
});

test("the image gets the package.json of every workspace, which npm ci requires", async () => {
  const { workspaces } = JSON.parse(await read("package.json"));
  for (const workspace of workspaces) {
    expect(dockerfile).toContain(`\nCOPY ${workspace}/package.json ${workspace}/\n`);
  }
});

test("the health check is a program of the image that node runs", async () => {
  const [, json = ""] = /^HEALTHCHECK [^[]*CMD (\[.*\])$/m.exec(dockerfile) ?? [];
  expect(JSON.parse(json)).toEqual(["node", "health-check.mjs"]);
  expect(dockerfile).toContain("\nCOPY deploy/health-check.mjs ./\n");
  // The image's context contains nothing else.
  expect((await read(".dockerignore")).split("\n")).toContain("!deploy/health-check.mjs");
});

/** Checks the health of a replica with these settings, as the container does. */
function checkHealth(settings: Readonly<Record<string, string>>): Promise<unknown> {
  const env = { ...imageEnv, ...settings };
  return run(process.execPath, [pathOf("deploy/health-check.mjs")], { timeout: TIMEOUT_MS, env });
}

/** Listens until the end of the test; returns the port. */
async function listenOn(server: Server, host: string): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  onTestFinished(async () => {
    await new Promise((resolve) => server.close(resolve));
  });
  return String((server.address() as AddressInfo).port);
}

const answerLivez: RequestListener = (request, response) =>
  response.writeHead(request.url === "/livez" ? 200 : 404).end();

test.each([
  ["on every address", "0.0.0.0", {}],
  ["on every address of IPv6", "::", { ONCEWARD_HOST: "::" }],
  ["on an address of its own", "127.0.0.2", { ONCEWARD_MANAGEMENT_HOST: "127.0.0.2" }],
])("the health check succeeds where management listens %s and answers /livez", async (_, host, settings) => {
  const port = await listenOn(createServer(answerLivez), host);
  await checkHealth({ ...settings, ONCEWARD_MANAGEMENT_PORT: port });
});

test("the health check succeeds over TLS, also if the server requests client certificates", async () => {
  const certificate = await makeCertificate();
  onTestFinished(() => certificate.remove());
  // Like the management port: https://nodejs.org/api/tls.html, `rejectUnauthorized`.
  const asksClients = { requestCert: true, rejectUnauthorized: false, ca: certificate.pem.cert };
  for (const asking of [{}, asksClients]) {
    const server = createTlsServer({ ...certificate.pem, ...asking }, answerLivez);
    const port = await listenOn(server, "127.0.0.1");
    await checkHealth({ ...tlsSettings(certificate), ONCEWARD_MANAGEMENT_PORT: port });
  }
});

test("the health check fails if /livez fails and if no server listens", async () => {
  const port = await listenOn(
    createServer((_, response) => response.writeHead(503).end()),
    "127.0.0.1",
  );
  await expect(checkHealth({ ONCEWARD_MANAGEMENT_PORT: port })).rejects.toMatchObject({ code: 1 });
  await expect(checkHealth({ ONCEWARD_MANAGEMENT_PORT: "1" })).rejects.toMatchObject({ code: 1 });
});

const DEFAULT_PORTS = [
  VARIABLES.ONCEWARD_GRPC_PORT.default,
  VARIABLES.ONCEWARD_HTTP_PORT.default,
  VARIABLES.ONCEWARD_MANAGEMENT_PORT.default,
];

/** Expands variables like Compose: to the default, or to 64 digits if a value is required. */
function filledIn(text: string): string {
  return text.replace(/\$\{\w+:-([^}]*)\}/g, "$1").replace(/\$\{\w+:\?[^}]*\}/g, "0".repeat(64));
}

/** Runs make-env.sh in a directory that contains nothing else. */
async function makeEnv() {
  const dir = await mkdtemp(join(tmpdir(), "ow-deploy-"));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  await mkdir(join(dir, "deploy"));
  await copyFile(pathOf("deploy/make-env.sh"), join(dir, "deploy", "make-env.sh"));
  const make = () => run("sh", ["deploy/make-env.sh"], { cwd: dir, timeout: TIMEOUT_MS });
  await make();
  const file = join(dir, ".env");
  const readEnv = () => readFile(file, "utf8");
  return { text: await readEnv(), mode: (await stat(file)).mode & 0o777, again: make, read: readEnv };
}

function read(path: string): Promise<string> {
  return readFile(pathOf(path), "utf8");
}

function pathOf(path: string): string {
  return fileURLToPath(new URL(`../../${path}`, import.meta.url));
}
