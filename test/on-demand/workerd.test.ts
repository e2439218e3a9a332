import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { arch, platform, tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";
import { afterAll, beforeAll, expect, test } from "vitest";
import { listen } from "../adapters/http/listen.ts";
import { createTenant } from "../support/servers/tenants.ts";
import { useServer } from "../support/servers/use-server.ts";

/** A running workerd, the runtime of Cloudflare Workers, that serves one Worker. */
interface Workerd extends AsyncDisposable {
  /** Such as `http://127.0.0.1:41234`. */
  readonly origin: string;
  /** What it wrote to its standard error so far. */
  readonly log: () => string;
}

/** Serves a Worker's bundle, an ES module, with text bindings. */
async function serveWorker(script: string, bindings: Readonly<Record<string, string>>): Promise<Workerd> {
  const directory = await mkdtemp(join(tmpdir(), "onceward-workerd-"));
  await writeFile(join(directory, "worker.js"), script);
  await writeFile(join(directory, "config.capnp"), configOf(bindings));
  // The program reports its port, which the system chooses, on this descriptor.
  const child = spawn(program(), ["serve", "config.capnp", "--control-fd=3"], {
    cwd: directory,
    env: {},
    stdio: ["ignore", "ignore", "pipe", "pipe"],
  });
  const exited = once(child, "exit");
  let log = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    log += text;
  });
  const stop = async () => {
    child.kill("SIGKILL");
    await exited;
    await rm(directory, { recursive: true });
  };
  const port = await Promise.race([portOf(child.stdio[3] as Readable), exited.then(() => undefined)]);
  if (port === undefined) {
    await stop();
    throw new Error(`workerd did not start: ${log}`);
  }
  return { origin: `http://127.0.0.1:${port}`, log: () => log, [Symbol.asyncDispose]: stop };
}

/** Without the package's install script, which only replaces its launcher by this file. */
function program(): string {
  const require = createRequire(createRequire(import.meta.url).resolve("workerd"));
  return require.resolve(`@cloudflare/workerd-${platform()}-${arch() === "x64" ? "64" : arch()}/bin/workerd`);
}

async function portOf(control: Readable): Promise<number | undefined> {
  for await (const line of createInterface(control)) {
    const { event, port } = JSON.parse(line);
    if (event === "listen") return port;
  }
  return undefined;
}

function configOf(bindings: Readonly<Record<string, string>>): string {
  const texts = Object.entries(bindings).map(
    ([name, text]) => `(name = ${JSON.stringify(name)}, text = ${JSON.stringify(text)})`,
  );
  return `
using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [
    (name = "worker", worker = .worker),
    (name = "internet", network = (allow = ["local"])),
  ],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "worker")],
);

const worker :Workerd.Worker = (
  modules = [(name = "worker.js", esModule = embed "worker.js")],
  bindings = [${texts.join(", ")}],
  compatibilityDate = "2026-04-01",
);
`;
}

// workerd gives each request its own I/O context: a request that awaits another one's fetch or timer never ends.

const { database, server } = useServer();
let workerd: Workerd;
let stopTokens: () => Promise<void>;

beforeAll(async () => {
  const { apiKey } = await createTenant(database);
  const tokens = await listen(createServer((_, response) => response.end(apiKey)));
  stopTokens = tokens.close;
  workerd = await serveWorker(await bundleWorker(), {
    ADDRESS: `http://127.0.0.1:${server.httpPort}`,
    API_KEY: apiKey,
    TOKEN_URL: `http://127.0.0.1:${tokens.port}`,
  });
});

afterAll(async () => {
  await workerd?.[Symbol.asyncDispose]();
  await stopTokens?.();
});

async function bundleWorker(): Promise<string> {
  const bundle = await rolldown({
    input: fileURLToPath(new URL("workerd/worker.ts", import.meta.url)),
    platform: "browser",
    resolve: { conditionNames: ["@onceward/source", "workerd", "browser", "import", "default"] },
  });
  const { output } = await bundle.generate({ format: "esm" });
  await bundle.close();
  return output[0].code;
}

interface Answer {
  readonly value: string;
  readonly replayed: boolean;
}

async function requestAll(queries: readonly string[]): Promise<readonly (Answer | string)[]> {
  return await Promise.all(queries.map(request));
}

async function request(query: string): Promise<Answer | string> {
  const response = await fetch(`${workerd.origin}/?${query}`);
  if (response.ok) return (await response.json()) as Answer;
  return `${response.status} ${await response.text()}\n${workerd.log()}`;
}

test.each(["key", "token"])(
  "24 concurrent requests run 24 operations, with the credential %s",
  async (kind) => {
    const queries = Array.from({ length: 24 }, (_, index) => `client=${kind}&key=${kind}-${index}`);
    const first = await requestAll(queries);
    expect(first).toEqual(queries.map(() => ({ value: expect.any(String), replayed: false })));
    const repeats = await requestAll(queries);
    expect(repeats).toEqual(first.map((answer) => ({ ...Object(answer), replayed: true })));
  },
);

test("8 concurrent requests with one key run its operation once", async () => {
  const answers = await requestAll(Array.from({ length: 8 }, () => "key=shared"));
  const value = Object(answers[0]).value;
  expect(answers.filter((answer) => Object(answer).replayed === false)).toHaveLength(1);
  expect(answers).toEqual(answers.map(() => ({ value, replayed: expect.any(Boolean) })));
});

test("concurrent requests repeat their calls to an unreachable service, each by its own timers", async () => {
  const queries = Array.from({ length: 8 }, (_, index) => `client=unreachable&key=unreachable-${index}`);
  expect(await requestAll(queries)).toEqual(queries.map(() => ({ reason: "NO_ANSWER" })));
});
