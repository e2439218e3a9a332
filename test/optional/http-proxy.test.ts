import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cp } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { createOnceward } from "@onceward/client";
import { parseConfig, startProxy } from "@onceward/http-proxy";
import { expect, onTestFinished, test, vi } from "vitest";
import { readEndpoint } from "../../clients/cli/src/probe/endpoint.ts";
import { probe } from "../../clients/cli/src/probe/probe.ts";
import { newDir } from "../support/new-dir.ts";
import { createTenant } from "../support/servers/tenants.ts";
import { useServer } from "../support/servers/use-server.ts";

/** Services of other languages, which know nothing of idempotency keys, behind the proxy. */

const run = promisify(execFile);
const UPSTREAMS = fileURLToPath(new URL("http-proxy", import.meta.url));
const INSTALL_TIMEOUT_MS = 600_000;
const FLASK = "flask==3.1.3";
const ROUTES = `routes:
  - path: /charges
    namespace: charges
    caller: { apiKey: authorization }
    waitMs: 10000
`;

const world = useServer();

async function has(program: string, ...args: string[]): Promise<boolean> {
  const isThere = await run(program, args).then(
    () => true,
    () => false,
  );
  if (!isThere) process.stderr.write(`A test of the HTTP proxy is skipped: install ${program}.\n`);
  return isThere;
}

/** Each starts a service on a port, in a folder of its own. */
const SERVICES: Readonly<Record<string, (dir: string, port: number) => Promise<ChildProcess>>> = {
  async Flask(dir, port) {
    await run("python3", ["-m", "venv", join(dir, "venv")]);
    await run(join(dir, "venv/bin/pip"), ["install", "--quiet", FLASK], { timeout: INSTALL_TIMEOUT_MS });
    const args = ["--app", "flask_app", "run", "--port", String(port)];
    return spawn(join(dir, "venv/bin/flask"), args, { cwd: dir, stdio: "ignore" });
  },
  async "Go's net/http"(dir, port) {
    const options = { cwd: join(dir, "go"), timeout: INSTALL_TIMEOUT_MS };
    await run("go", ["build", "-o", "service", "."], options);
    return spawn(join(dir, "go/service"), [String(port)], { stdio: "ignore" });
  },
  async "PHP's own server"(dir, port) {
    const env = { ...process.env, CHARGES: join(dir, "charges.txt"), PHP_CLI_SERVER_WORKERS: "4" };
    return spawn("php", ["-S", `127.0.0.1:${port}`, join(dir, "index.php")], { env, stdio: "ignore" });
  },
};
const isInstalled = {
  Flask: await has("python3", "-m", "venv", "--help"),
  "Go's net/http": await has("go", "version"),
  "PHP's own server": await has("php", "--version"),
};

for (const [name, start] of Object.entries(SERVICES)) {
  test.runIf(isInstalled[name as keyof typeof isInstalled])(
    `${name}: the probe finds what the service does not guard, and nothing behind the proxy`,
    async () => {
      const dir = await newDir();
      await cp(UPSTREAMS, dir, { recursive: true });
      const port = await freePort();
      const child = await start(dir, port);
      onTestFinished(async () => {
        child.kill("SIGKILL");
        if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
      });
      const upstream = `http://127.0.0.1:${port}`;
      await vi.waitUntil(() => fetch(`${upstream}/charges`).catch(() => false), 60_000);
      const unguarded = await failuresAt(upstream, upstream);
      expect(unguarded).toEqual(
        expect.arrayContaining(["same-key.effect", "twins.10", "lost.after-request"]),
      );
      expect(await failuresAt(await guard(upstream), upstream)).toEqual([]);
    },
    INSTALL_TIMEOUT_MS,
  );
}

async function guard(upstream: string): Promise<string> {
  const tenant = await createTenant(world.database, { on_lease_expiry: "HOLD" });
  const address = `http://127.0.0.1:${world.server.grpcPort}`;
  const onceward = createOnceward({ address, apiKey: tenant.apiKey });
  const proxy = await startProxy({
    onceward,
    upstream: new URL(upstream),
    routes: parseConfig(ROUTES, "routes.yaml"),
    listen: { host: "127.0.0.1", port: 0 },
    management: { host: "127.0.0.1", port: 0 },
    warn: () => {},
  });
  onTestFinished(async () => {
    await proxy.close(0);
    await onceward.close();
  });
  return `http://127.0.0.1:${proxy.port}`;
}

/** Returns the checks that fail. */
async function failuresAt(origin: string, upstream: string): Promise<readonly string[]> {
  const headers = { "content-type": "application/json" };
  const endpoint = readEndpoint({
    url: `${origin}/charges`,
    headers: { ...headers, authorization: "Bearer one" },
    body: '{"amount":1,"order":"{{id}}"}',
    otherBody: '{"amount":2,"order":"{{id}}"}',
    otherHeaders: { ...headers, authorization: "Bearer two" },
    invalidBody: '{"amount":"invalid"}',
    keyRequired: origin !== upstream,
    replayHeader: "Idempotency-Replayed",
    countUrl: `${upstream}/charges`,
    lateMs: 0,
  });
  const bounds = { requests: 2000, bytes: 2 ** 28, seconds: 300, perSecond: 1000, requestMs: 30_000 };
  const { findings } = await probe(endpoint, { env: {}, bounds });
  return findings.flatMap(({ check, verdict }) => (verdict.kind === "failed" ? [check.id] : []));
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, "close");
  return port;
}
