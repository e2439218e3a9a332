import { execFile } from "node:child_process";
import { copyFile, mkdir, readdir, readFile, stat } from "node:fs/promises";
import { createServer, type RequestListener, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { parse } from "yaml";
import { readConfig } from "../../server/src/config/config.ts";
import { VARIABLES } from "../../server/src/config/variables.ts";
import { VERSION } from "../../server/src/version.ts";
import { makeCertificate, tlsSettings } from "../support/network/certificates.ts";
import { newDir } from "../support/new-dir.ts";

const run = promisify(execFile);
const TIMEOUT_MS = 20_000;

interface Service {
  readonly image?: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly command?: readonly string[];
  readonly ports?: readonly string[];
  readonly secrets?: readonly string[];
  readonly volumes?: readonly string[];
  readonly depends_on?: unknown;
  readonly pids_limit?: number;
  readonly stop_grace_period?: string;
  readonly build?: { readonly dockerfile: string };
  readonly logging?: { readonly options: Readonly<Record<string, string>> };
  readonly deploy?: { readonly resources: { readonly limits: Readonly<Record<string, unknown>> } };
}

interface Compose {
  readonly services: Readonly<Record<string, Service>>;
  readonly secrets?: Readonly<Record<string, { readonly file: string }>>;
}

const COMPOSE_FILES = [
  "docker-compose.yml",
  ...["observability", "tls", "encryption", "second-pepper"].map((name) => `deploy/compose.${name}.yml`),
];
const composes = await Promise.all(
  COMPOSE_FILES.map(async (file) => ({ file, ...(parse(await read(file), { merge: true }) as Compose) })),
);
const services = composes[0]?.services ?? {};
const allServices = composes.flatMap(({ services }) => Object.entries(services));
const ours = Object.entries(services).filter(([, { build }]) => build !== undefined);
const dockerfile = await read("deploy/Dockerfile");
const imageEnv = Object.fromEntries(
  [...dockerfile.matchAll(/^ENV (\w+)=(\S+)$/gm)].map(([, name = "", value]) => [name, value]),
);

test("two replicas wait for their role, it for one migration, that for Postgres", () => {
  expect(ours.map(([name, { command }]) => [name, command])).toEqual([
    ["migrate", ["migrate"]],
    ["replica-1", ["serve"]],
    ["replica-2", ["serve"]],
  ]);
  const completed = { condition: "service_completed_successfully" };
  for (const name of ["replica-1", "replica-2"]) {
    expect(services[name]?.depends_on).toMatchObject({ "service-role": completed });
  }
  expect(services["service-role"]?.depends_on).toEqual({ migrate: completed });
  expect(services.migrate?.depends_on).toEqual({ postgres: { condition: "service_healthy" } });
});

test("the compose file's image is tagged with the version, to start the previous one again", () => {
  for (const [name, { image }] of ours) {
    expect([name, image]).toEqual([name, `onceward-server:\${ONCEWARD_VERSION:-${VERSION}}`]);
  }
});

test("make-secrets.sh makes secrets that containers can read, different and never replaced", async () => {
  const [first, second] = [await makeSecrets(), await makeSecrets()];
  for (const [name, { environment = {} }] of ours) {
    const settings = Object.entries(environment).map(([variable, text]) => {
      return [variable, text.replace("/run/secrets", first.dir).replace(/\$\{\w+:-([^}]*)\}/, "$1")];
    });
    const config = readConfig({ ...imageEnv, ...Object.fromEntries(settings) });
    expect([name, config.ONCEWARD_HOST]).toEqual([name, "0.0.0.0"]);
    const { username } = new URL(config.DATABASE_URL);
    expect([name, username]).toEqual([name, name === "migrate" ? "onceward" : "onceward_service"]);
  }
  expect(await first.files()).not.toEqual(await second.files());
  expect((await stat(first.dir)).mode & 0o777).toBe(0o700);
  for (const file of await readdir(first.dir)) {
    expect([file, (await stat(join(first.dir, file))).mode & 0o777]).toEqual([file, 0o444]);
  }
  const before = await first.files();
  await expect(first.again()).rejects.toThrow();
  expect(await first.files()).toEqual(before);
});

test("the passwords of one server and its clients are the same", async () => {
  const made = await makeSecrets();
  const files = await made.files();
  const password = (name: string) => new URL(files[name] ?? "").password;
  expect(password("owner_url")).toBe(files.postgres_password);
  expect(password("service_url")).toBe(files.service_password);
  expect(files["redis.conf"]).toBe(`requirepass ${password("redis_url")}\n`);
});

test("every secret that a service mounts is declared, and made by make-secrets.sh", async () => {
  const declared = Object.assign({}, ...composes.map(({ secrets }) => secrets ?? {})) as Compose["secrets"];
  const mounted = new Set(allServices.flatMap(([, { secrets = [] }]) => secrets));
  expect([...mounted].toSorted()).toEqual(Object.keys(declared ?? {}).toSorted());
  const made = Object.keys(await (await makeSecrets()).files()).map((name) => `deploy/secrets/${name}`);
  // A certificate, encryption keys and a second pepper are the operator's.
  const given = ["balancer.pem", "encryption_keys", "api_key_second_pepper"].map(
    (name) => `deploy/secrets/${name}`,
  );
  const named = Object.values(declared ?? {}).map(({ file }) => file);
  expect(named.toSorted()).toEqual([...made, ...given].toSorted());
});

test("no compose file contains a secret, or passes one in an environment", async () => {
  for (const file of COMPOSE_FILES) {
    const secret =
      /(PASSWORD|PEPPER|SECRET|ENCRYPTION_KEYS|DATABASE_URL|REDIS_URL|OPERATOR_KEY)\w*(?<!_FILE): *[^\s]/;
    expect(await read(file)).not.toMatch(secret);
  }
});

test("the image exposes the server's default ports", () => {
  const exposed = /^EXPOSE (.*)$/m.exec(dockerfile)?.[1]?.split(" ");
  expect(exposed).toEqual(DEFAULT_PORTS);
});

test("the balancer publishes one port for gRPC and one for HTTP, all on loopback", () => {
  const published = composes.map(({ services }) =>
    Object.entries(services).flatMap(([name, { ports = [] }]) => ports.map((port) => [name, port])),
  );
  expect(published[0]).toEqual([
    ["balancer", "127.0.0.1:50051:50051"],
    ["balancer", "127.0.0.1:8080:8080"],
  ]);
  const outside = published.flat().map(([, port = ""]) => port.split(":").slice(0, 2).join(":"));
  expect(outside.filter((port) => !port.startsWith("127.0.0.1:"))).toEqual([]);
  expect(new Set(outside).size).toBe(outside.length);
});

test("replicas read encryption keys, made as the page says, from a secret of their own", async () => {
  const withKeys = composes.find(({ file }) => file === "deploy/compose.encryption.yml");
  expect(Object.keys(withKeys?.services ?? {})).toEqual(["replica-1", "replica-2"]);
  const [, command = ""] =
    /^(printf .*) > deploy\/secrets\/encryption_keys$/m.exec(await read("deploy/README.md")) ?? [];
  const dir = await newDir();
  await run("sh", ["-c", `${command} > "$1/encryption_keys"`, "sh", dir]);
  for (const { environment = {}, secrets } of Object.values(withKeys?.services ?? {})) {
    expect(secrets).toEqual(["encryption_keys"]);
    const file = environment.ONCEWARD_ENCRYPTION_KEYS_FILE?.replace("/run/secrets", dir);
    const config = readConfig({
      DATABASE_URL: "postgresql://host/database",
      ONCEWARD_API_KEY_PEPPER: "x".repeat(32),
      ONCEWARD_ENCRYPTION_KEYS_FILE: file,
    });
    expect(config.ONCEWARD_ENCRYPTION_KEYS).toMatch(/^1:/);
  }
});

test("replicas read a second pepper, for its change, from a secret of their own", () => {
  const withPepper = composes.find(({ file }) => file === "deploy/compose.second-pepper.yml");
  const replica = {
    environment: { ONCEWARD_API_KEY_SECOND_PEPPER_FILE: "/run/secrets/api_key_second_pepper" },
    secrets: ["api_key_second_pepper"],
  };
  expect(withPepper?.services).toEqual({ "replica-1": replica, "replica-2": replica });
  expect(VARIABLES.ONCEWARD_API_KEY_SECOND_PEPPER).toBeDefined();
});

test.each(allServices.filter(([, { image }]) => image !== undefined))(
  "%s has a pinned version, and bounds for processor, memory, processes and log",
  (_, { image, build, logging, deploy, pids_limit }) => {
    expect(build ?? image).toEqual(build ?? expect.stringMatching(/:v?\d+(\.\d+)*$/));
    expect(deploy?.resources.limits).toEqual({
      cpus: expect.stringMatching(/^\d/),
      memory: expect.stringMatching(/^\d+[MG]$/),
    });
    expect(pids_limit).toBeGreaterThan(0);
    expect(logging?.options).toEqual({ "max-size": "10m", "max-file": "5" });
  },
);

test("every file that a service mounts exists", async () => {
  const mounted = allServices
    .flatMap(([, { volumes = [] }]) => volumes)
    .filter((path) => path.startsWith("./"));
  expect(mounted.length).toBeGreaterThan(5);
  for (const volume of mounted) await stat(pathOf(volume.split(":")[0] ?? ""));
});

test("a replica's grace period is longer than its drain", () => {
  const config = readConfig({
    DATABASE_URL: "postgresql://host/database",
    ONCEWARD_API_KEY_PEPPER: "x".repeat(32),
  });
  const drainMs = config.ONCEWARD_DRAIN_DELAY + config.ONCEWARD_DRAIN_TIMEOUT;
  expect(Number.parseInt(services["replica-1"]?.stop_grace_period ?? "", 10) * 1000).toBeGreaterThan(drainMs);
});

test("the images have the version of Node that the tests run on", async () => {
  const { packages } = JSON.parse(await read("package-lock.json"));
  const { version } = packages["node_modules/node"];
  expect(dockerfile).toContain(`\nARG NODE_IMAGE=node:${version}-trixie-slim\n`);
  const stages = [...dockerfile.matchAll(/^FROM (\S+)(?: AS (\S+))?$/gm)];
  const names = new Set(stages.map(([, , name]) => name));
  const bases = new Set(stages.flatMap(([, base]) => (names.has(base) ? [] : [base])));
  expect(bases).toEqual(new Set(["$" + "{NODE_IMAGE}"]));
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

/** Runs make-secrets.sh in a directory that contains nothing else. */
async function makeSecrets() {
  const root = await newDir();
  await mkdir(join(root, "deploy"));
  await copyFile(pathOf("deploy/make-secrets.sh"), join(root, "deploy", "make-secrets.sh"));
  const make = () => run("sh", ["deploy/make-secrets.sh"], { cwd: root, timeout: TIMEOUT_MS });
  await make();
  const dir = join(root, "deploy", "secrets");
  const files = async (): Promise<Record<string, string>> => {
    const names = await readdir(dir);
    const contents = names.map(async (name) => [name, await readFile(join(dir, name), "utf8")]);
    return Object.fromEntries(await Promise.all(contents));
  };
  return { dir, again: make, files };
}

function read(path: string): Promise<string> {
  return readFile(pathOf(path), "utf8");
}

function pathOf(path: string): string {
  return fileURLToPath(new URL(`../../${path}`, import.meta.url));
}
