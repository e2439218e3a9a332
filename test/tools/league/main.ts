import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { readEndpoint } from "../../../clients/cli/src/probe/endpoint.ts";
import { probe, type Report } from "../../../clients/cli/src/probe/probe.ts";
import { failUsage, readCommandLine } from "../../../server/dev/command-line.ts";
import { startEmbeddedRedis } from "../../../server/dev/embedded/redis.ts";
import { printable } from "../../../server/src/core/commands/printable.ts";
import { startService } from "../demo/service.ts";
import { comparisonPage, type Result } from "./page.ts";
import { SUBJECTS, type Subject } from "./subjects.ts";

const USAGE = `npm run league -- [OPTIONS]: installs libraries from npm, PyPI and Go's proxy into a temporary folder, probes a
small service with each, and shows the table. What can't be installed is named.
  --only NAME  the libraries with this in their name
  --write      write the table to clients/comparison.md`;

const PAGE = new URL("../../../clients/comparison.md", import.meta.url);
const APPS = fileURLToPath(new URL("apps/", import.meta.url));
const INSTALL_MS = 300_000;
const START_MS = 60_000;
/** More than a probe of other people's services may send: these are ours, on this machine. */
const BOUNDS = { requests: 5000, bytes: 64 * 1024 * 1024, seconds: 300, perSecond: 2000, requestMs: 20_000 };
const run = promisify(execFile);

const { values } = readCommandLine(USAGE, {
  options: { only: { type: "string", default: "" }, write: { type: "boolean", default: false } },
});
const subjects = SUBJECTS.filter(({ name }) => name.includes(values.only));
if (subjects.length === 0) failUsage(USAGE, `no library has ${values.only} in its name`);

await using cleanUp = new AsyncDisposableStack();
for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.once(signal, () => void cleanUp.disposeAsync().finally(() => process.exit(130)));
const folder = await mkdtemp(join(tmpdir(), "onceward-league-"));
cleanUp.defer(() => rm(folder, { recursive: true, force: true }));
const redis = await startEmbeddedRedis(process.env.PATH ?? "");
if (redis === undefined) throw new Error("install redis-server or valkey-server first");
cleanUp.defer(() => redis.stop());
const service = await startService();
cleanUp.use(service);
for (const profile of ["onceward", "stripe", "acp", "ucp"])
  await service.declare(`charges-${profile}`, "RUN");
const env = {
  PATH: process.env.PATH,
  HOME: process.env.HOME,
  ONCEWARD_ADDRESS: service.guard.address,
  ONCEWARD_API_KEY: service.guard.apiKey,
};

const results: Result[] = [];
for (const subject of subjects) {
  const result = await examine(subject);
  results.push(result);
  process.stdout.write(`${subject.name}: ${printable(summaryOf(result))}\n`);
}
const page = comparisonPage(results, new Date());
if (values.write) await writeFile(PAGE, page);
else process.stdout.write(`\n${printable(page)}`);

async function examine(subject: Subject): Promise<Result> {
  const home = join(folder, subject.name.replaceAll(/\W+/g, "-"));
  try {
    const program = await install(subject, home);
    return { subject, report: await judge(subject, program, home) };
  } catch (error) {
    const text = error instanceof Error ? error.message : `${error}`;
    return { subject, reason: text.trim().split("\n").at(-1) ?? "" };
  }
}

/** Installs the subject. Returns its program and arguments. */
async function install({ registry, packages, app }: Subject, home: string): Promise<readonly string[]> {
  const [program = "", ...args] = app;
  const options = { cwd: home, timeout: INSTALL_MS, maxBuffer: 16 * 1024 * 1024 };
  if (registry === "here") return [process.execPath, "--conditions=@onceward/source", ...args.map(toApp)];
  await mkdir(home);
  await cp(APPS, home, { recursive: true });
  if (registry === "npm") {
    await writeFile(join(home, "package.json"), "{}");
    await run("npm", ["install", "--silent", "--ignore-scripts", "--legacy-peer-deps", ...packages], options);
    return [process.execPath, ...args];
  }
  if (registry === "PyPI") {
    await run("python3", ["-m", "venv", "venv"], options);
    await run("venv/bin/pip", ["install", "--quiet", ...packages], options);
    return [join(home, "venv/bin", program), ...args];
  }
  await writeFile(join(home, "fiber/go.mod"), "module league\n\ngo 1.24\n");
  const inModule = { ...options, cwd: join(home, "fiber") };
  for (const name of packages) await run("go", ["get", `${name}`], inModule);
  await run("go", ["mod", "tidy"], inModule);
  await run("go", ["build", "-o", "service", "."], inModule);
  return [join(home, "fiber/service"), ...args];
}

function toApp(arg: string): string {
  return arg.endsWith(".ts") ? join(APPS, arg) : arg;
}

async function judge(subject: Subject, program: readonly string[], home: string): Promise<Report> {
  const port = await freePort();
  const [command = "", ...args] = program.map((arg) =>
    arg === "PORT" ? String(port) : arg === "REDIS" ? redisUrl() : arg,
  );
  const cwd = subject.registry === "here" ? APPS : home;
  const child = spawn(command, args, { cwd, env, stdio: ["ignore", "ignore", "pipe"] });
  let errors = "";
  child.stderr.on("data", (text) => {
    errors = (errors + text).slice(-2000);
  });
  try {
    await serves(child, port, () => errors);
    return await probe(endpointOf(subject, port), { env: {}, bounds: BOUNDS });
  } finally {
    child.kill("SIGKILL");
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  }
}

function redisUrl(): string {
  return redis?.url.replace("redis+unix://", "unix://") ?? "";
}

function endpointOf({ unclaimed, replayHeader }: Subject, port: number) {
  const origin = `http://127.0.0.1:${port}`;
  const headers = (caller: string) => ({
    "content-type": "application/json",
    authorization: `Bearer ${caller}`,
  });
  return readEndpoint({
    url: `${origin}/charges`,
    headers: headers("one"),
    body: '{"amount":1,"order":"{{id}}"}',
    otherBody: '{"amount":2,"order":"{{id}}"}',
    otherPath: "/refunds",
    otherMethod: "PUT",
    otherHeaders: headers("two"),
    invalidBody: '{"amount":"invalid"}',
    failHeaders: { "x-fail": "before" },
    countUrl: `${origin}/count`,
    ...(replayHeader !== undefined && { replayHeader }),
    unclaimed: [...unclaimed],
  });
}

async function serves(child: ChildProcess, port: number, errors: () => string): Promise<void> {
  const endsAtMs = Date.now() + START_MS;
  while (Date.now() < endsAtMs) {
    if (child.exitCode !== null) throw new Error(`it ended: ${errors()}`);
    const isUp = await fetch(`http://127.0.0.1:${port}/count`).then(
      (response) => response.ok,
      () => false,
    );
    if (isUp) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`it does not serve: ${errors()}`);
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, "close");
  return port;
}

function summaryOf({ report, reason }: Result): string {
  if (report === undefined) return `not examined: ${reason}`;
  return (["passed", "failed", "nothing", "skipped"] as const)
    .map((kind) => `${report.findings.filter(({ verdict }) => verdict.kind === kind).length} ${kind}`)
    .join(", ");
}
