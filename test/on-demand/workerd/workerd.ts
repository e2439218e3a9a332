import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { arch, platform, tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";

/** A running workerd, the runtime of Cloudflare Workers, that serves one Worker. */
export interface Workerd extends AsyncDisposable {
  /** Such as `http://127.0.0.1:41234`. */
  readonly origin: string;
  /** What it wrote to its standard error so far. */
  readonly log: () => string;
}

/** Serves a Worker's bundle, an ES module, with text bindings. */
export async function serveWorker(
  script: string,
  bindings: Readonly<Record<string, string>>,
): Promise<Workerd> {
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
