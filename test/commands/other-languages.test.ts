import { execFile } from "node:child_process";
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify, stripVTControlCharacters } from "node:util";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { IdempotencyService } from "@onceward/client/proto";
import { expect, test } from "vitest";
import { createWorkplaceWithCluster, type Workplace } from "../support/processes/command.ts";
import { type Dev, pressCtrlC, startDev } from "../support/processes/dev.ts";
import { codeBlocks, firstBlock } from "../support/processes/readme.ts";

const run = promisify(execFile);
const VERSION_TIMEOUT_MS = 30_000;
/** Version 3.8 or newer, as the README requires. */
const VERSION = /Apache Maven (3\.[89]|3\.\d\d|[4-9])/;
/**
 * Maven's words for a repository that gave no answer, and protobuf-maven-plugin's when it downloads `protoc`.
 * An artifact that the repository doesn't have is another error ("Could not find"): the pom.xml is wrong, and
 * the test fails.
 */
const NO_ANSWER = /Could not transfer|No result was returned by Aether|in offline mode/;
/** Set by `npm run test:languages`: tests need no network otherwise, but for npm's and Debian's packages. */
const MAY_DOWNLOAD = process.env.ONCEWARD_TEST_DOWNLOADS === "true";
/** A first build downloads some 30 MB and compiles 200 classes: 90 s on two busy cores, and more than 270 s on two that are oversubscribed. */
const BUILD_TIMEOUT_MS = MAY_DOWNLOAD ? 900_000 : 270_000;

function hasMaven(): Promise<boolean> {
  return run("mvn", ["--version"], { timeout: VERSION_TIMEOUT_MS }).then(
    ({ stdout }) => VERSION.test(stdout),
    () => false,
  );
}

/**
 * Builds a directory's project with the artifacts of the local Maven repository; `npm run test:languages`
 * downloads those that it lacks for the build and `exec:java`. Returns false if artifacts are missing: none
 * are downloaded, or no repository answers in time.
 *
 * @throws if Maven fails for another reason, such as a program that doesn't compile.
 */
async function buildFetching(dir: string): Promise<boolean> {
  try {
    // `exec:help` downloads the plugin that `exec:java` belongs to.
    await runMaven(dir, [...(MAY_DOWNLOAD ? [] : ["--offline"]), "compile", "exec:help"]);
    return true;
  } catch (error) {
    const { killed, stdout } = error as { killed?: boolean; stdout?: string };
    if (killed === true || NO_ANSWER.test(stdout ?? "")) return false;
    throw error;
  }
}

/** Runs Maven in a directory, and returns its output without colors. @throws if it fails. */
async function runMaven(
  dir: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
  // A run is too short for the optimizing compiler to pay off: without it, half the processor time.
  const MAVEN_OPTS = `${process.env.MAVEN_OPTS ?? ""} -XX:TieredStopAtLevel=1`;
  const options = { cwd: dir, env: { ...process.env, ...env, MAVEN_OPTS }, timeout: BUILD_TIMEOUT_MS };
  const running = run("mvn", ["--batch-mode", "--no-transfer-progress", ...args], options);
  const { stdout } = await running.catch((error) => {
    // Maven prints the reason of a failure to standard output.
    error.message += `\n${error.stdout}`;
    throw error;
  });
  return stripVTControlCharacters(stdout);
}

const README = "clients/README.md";
const PROTO = fileURLToPath(new URL("../../proto", import.meta.url));
const MODULES = fileURLToPath(new URL("../../node_modules", import.meta.url));
const TIMEOUT_MS = 30_000;
/** More than the bounds of Maven's two runs together: the build, which may download, and the program. */
const JAVA_TIMEOUT_MS = 2_000_000;

const canRunJava = (await hasMaven()) && (await succeeds("javac", ["--release", "17", "-version"]));
if (!canRunJava) {
  process.stderr.write(
    "The Java client is skipped: no javac of Java 17 or newer, or no mvn of Maven 3.8 or newer, is installed.\n",
  );
}
const hasGrpcurl = await succeeds("grpcurl", ["-version"]);

test.runIf(canRunJava)(
  "the README's Java claims, completes, is replayed to and reads a refusal",
  { timeout: JAVA_TIMEOUT_MS },
  async ({ skip }) => {
    const workplace = await createWorkplaceWithCluster();
    const pom = (await firstBlock(README, "xml")).replace("../onceward/proto", PROTO);
    await writeFile(join(workplace.dir, "pom.xml"), pom);
    const dev = await startDev(workplace);
    const sources = join(workplace.dir, "src", "main", "java");
    await mkdir(sources, { recursive: true });
    const program = await firstBlock(README, "java");
    await writeFile(join(sources, "Charge.java"), program.replace("127.0.0.1:50051", addressOf(dev)));
    if (!(await buildFetching(workplace.dir))) {
      await pressCtrlC(dev);
      const why =
        "the local Maven repository lacks artifacts, which only npm run test:languages downloads, or no repository answers in time";
      process.stderr.write(`The Java client is skipped: ${why}.\n`);
      skip(why);
    }
    const env = { ONCEWARD_API_KEY: dev.callerKey };
    const printed = await runMaven(workplace.dir, ["--offline", "--quiet", "exec:java"], env);
    expect(printed).toBe('{"charge": "ch_1"}\n{"charge": "ch_1"}\nFINGERPRINT_MISMATCH\n');
    await pressCtrlC(dev);
  },
);

test("the README's Connect client looks up over HTTP/2 and HTTP/1.1 on the named ports", async () => {
  const workplace = await createWorkplaceWithCluster();
  const dev = await startDev(workplace);
  const script = (await firstBlock(README, "js"))
    .replace("127.0.0.1:50051", addressOf(dev))
    .replace("127.0.0.1:8080", new URL(dev.httpUrl).host);
  await writeFile(join(workplace.dir, "lookup.mjs"), script);
  await symlink(MODULES, join(workplace.dir, "node_modules"));
  expect(
    await runThere(workplace, dev, process.execPath, ["--conditions=@onceward/source", "lookup.mjs"]),
  ).toBe("unknown\nunknown\n");
  const overHttp2 = createClient(
    IdempotencyService,
    createConnectTransport({ baseUrl: dev.grpcUrl, httpVersion: "2" }),
  );
  await expect(overHttp2.lookup({})).rejects.toThrow("HTTP 415");
  await pressCtrlC(dev);
});

test.runIf(hasGrpcurl)("the README's grpcurl claims and completes", async () => {
  const workplace = await createWorkplaceWithCluster();
  const dev = await startDev(workplace);
  const [claim = "", complete = ""] = (await codeBlocks(README, "sh")).map((call) =>
    call.replace("127.0.0.1:50051", addressOf(dev)),
  );
  const { claimed } = JSON.parse(await runThere(workplace, dev, "sh", ["-c", claim]));
  expect(claimed).toMatchObject({ attempt: 1 });
  const withToken = `FENCING_TOKEN=${claimed.fencingToken}\n${complete}`;
  expect(JSON.parse(await runThere(workplace, dev, "sh", ["-c", withToken]))).toHaveProperty("completedAt");
  const { completed } = JSON.parse(await runThere(workplace, dev, "sh", ["-c", claim]));
  expect(completed.result).toMatchObject({ payload: "Y2hfMQ==", contentType: "text/plain" });
  await pressCtrlC(dev);
});

/** Returns the output of a program that has the caller's key. */
async function runThere(
  { dir }: Workplace,
  dev: Dev,
  program: string,
  args: readonly string[],
): Promise<string> {
  const env = { PATH: process.env.PATH, ONCEWARD_API_KEY: dev.callerKey };
  const { stdout } = await run(program, [...args], { cwd: dir, env, timeout: TIMEOUT_MS });
  return stdout;
}

function addressOf({ grpcUrl }: Dev): string {
  return new URL(grpcUrl).host;
}

function succeeds(program: string, args: readonly string[]): Promise<boolean> {
  return run(program, [...args], { timeout: TIMEOUT_MS }).then(
    () => true,
    () => false,
  );
}
