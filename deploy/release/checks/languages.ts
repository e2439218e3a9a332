import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { ROOT, run } from "../commands.ts";

/** Where the service listens, and the key of its demo tenant's caller. */
interface Demo {
  readonly host: string;
  readonly key: string;
}

/** The first program of each client's README prints the first delivery twice. */
const REPLAYED = /^(.*first.*)\n\1\n$/;
const GRPC_ADDRESS = /gRPC \(.*\) +(\S+)/;
const CALLER_KEY = /caller's key +(\S+)/;

/**
 * Installs the Go module from a folder that is a proxy of modules, outside the repository, and runs the five lines of its README
 * against a service. Returns what did not work. @throws Error if they fail.
 */
export function goProblems(zip: string, version: string, goModule: string): Promise<readonly string[]> {
  return withDemo(async (demo, dir) => {
    const versions = join(dir, "proxy", goModule, "@v");
    await mkdir(versions, { recursive: true });
    await copyFile(zip, join(versions, `v${version}.zip`));
    await writeFile(join(versions, "list"), `v${version}\n`);
    await writeFile(join(versions, `v${version}.info`), JSON.stringify({ Version: `v${version}` }));
    const module = await run(dir, ["unzip", "-p", zip, `${goModule}@v${version}/go.mod`]);
    await writeFile(join(versions, `v${version}.mod`), module);
    await writeFile(join(dir, "main.go"), await firstProgram("clients/go/README.md", "go", demo));
    const { GOPROXY: proxies = "https://proxy.golang.org,direct" } = process.env;
    const env = {
      GOPROXY: `file://${join(dir, "proxy")},${proxies}`,
      GONOSUMDB: goModule,
      ONCEWARD_API_KEY: demo.key,
    };
    await run(dir, ["go", "mod", "init", "example.com/billing"], env);
    await run(dir, ["go", "get", `${goModule}@v${version}`], env);
    await run(dir, ["go", "mod", "tidy"], env);
    return differs("the Go client", await run(dir, ["go", "run", "."], env));
  });
}

/** Installs a wheel or an sdist in a new environment, and does the same with it. */
export function pythonProblems(distribution: string): Promise<readonly string[]> {
  return withDemo(async (demo, dir) => {
    const python = join(dir, "venv/bin/python");
    await run(dir, ["python3", "-m", "venv", join(dir, "venv")]);
    await run(dir, [python, "-m", "pip", "install", "--quiet", distribution]);
    await writeFile(join(dir, "program.py"), await firstProgram("clients/python/README.md", "python", demo));
    return differs(
      "the Python client",
      await run(dir, [python, "program.py"], { ONCEWARD_API_KEY: demo.key }),
    );
  });
}

async function firstProgram(page: string, language: string, { host }: Demo): Promise<string> {
  const text = await readFile(join(ROOT, page), "utf8");
  const [, program = ""] = new RegExp(`^\`\`\`${language}\n([\\s\\S]*?)^\`\`\`$`, "m").exec(text) ?? [];
  return program.replace("127.0.0.1:50051", host);
}

function differs(what: string, printed: string): readonly string[] {
  return REPLAYED.test(printed) ? [] : [`${what} prints ${JSON.stringify(printed)}`];
}

/** Runs the program of `npm start` on free ports, in a folder that is removed afterwards. */
async function withDemo<T>(use: (demo: Demo, dir: string) => Promise<T>): Promise<T> {
  const dir = await mkdtemp(join(tmpdir(), "ow-release-"));
  // As root, Postgres runs as another user, who must have access.
  await chmod(dir, 0o755);
  const ports = { ONCEWARD_GRPC_PORT: "0", ONCEWARD_HTTP_PORT: "0", ONCEWARD_MANAGEMENT_PORT: "0" };
  const server = spawn(process.execPath, [join(ROOT, "server/dev/main.ts")], {
    cwd: dir,
    env: { ...process.env, ...ports },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(server, "exit");
  try {
    return await use(await untilStarted(server.stdout, ended), dir);
  } finally {
    server.kill("SIGINT");
    await ended;
    await rm(dir, { recursive: true, force: true });
  }
}

/** Reads the banner, and then drops what the service prints. @throws Error if it ends before. */
async function untilStarted(output: Readable, ended: Promise<unknown>): Promise<Demo> {
  let printed = "";
  const started = new Promise<Demo>((resolve) => {
    output.setEncoding("utf8").on("data", (part: string) => {
      printed += part;
      const [, host] = GRPC_ADDRESS.exec(printed) ?? [];
      const [, key] = CALLER_KEY.exec(printed) ?? [];
      if (host !== undefined && key !== undefined && printed.includes("Ctrl-C")) resolve({ host, key });
    });
  });
  const ending = ended.then(() => {
    throw new Error(`the service ended: ${printed}`);
  });
  // Once the service has started, its end is not a failure.
  ending.catch(() => {});
  return await Promise.race([started, ending]);
}
