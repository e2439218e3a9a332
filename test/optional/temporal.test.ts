import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir } from "node:fs/promises";
import { connect } from "node:net";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { usePackedClient } from "../support/packages/packed-client.ts";
import { freePort } from "../support/redis/redis.ts";
import { createTenant } from "../support/servers/tenants.ts";
import { useServer } from "../support/servers/use-server.ts";

/** The packed client beside Temporal's own packages and its development server. */

const run = promisify(execFile);
const EXAMPLES = fileURLToPath(new URL("../../clients/typescript/examples/", import.meta.url));
const BIN = fileURLToPath(new URL("../../node_modules/.cache/temporal/", import.meta.url));
const PATH = [process.env.PATH, BIN].join(delimiter);
const VERSION = "1.24.0";
const PACKAGES = ["worker", "client", "workflow", "activity", "common"].map(
  (name) => `@temporalio/${name}@${VERSION}`,
);
const CLI = "github.com/temporalio/cli/cmd/temporal@v1.5.1";
/** Go compiles the server once, for minutes. */
const BUILD_TIMEOUT_MS = 900_000;
const INSTALL_TIMEOUT_MS = 300_000;
const EXAMPLE_TIMEOUT_MS = 60_000;

const can = (command: string, ...args: string[]) =>
  run(command, args, { env: { ...process.env, PATH } }).then(
    () => true,
    () => false,
  );
const hasServer = await can("temporal", "--version");
const hasGo = await can("go", "version");
if (!hasServer && !hasGo)
  process.stderr.write(
    "Tests with a real Temporal server are skipped: install Go (golang-go), or temporal.\n",
  );

const { database, server } = useServer();
const packed = usePackedClient();

describe.runIf(hasServer || hasGo)("An activity of a Temporal worker", () => {
  beforeAll(async () => {
    if (hasServer) return;
    await mkdir(BIN, { recursive: true });
    const env = { ...process.env, GOBIN: BIN, CGO_ENABLED: "0" };
    await run("go", ["install", CLI], { env, timeout: BUILD_TIMEOUT_MS });
  }, BUILD_TIMEOUT_MS);

  test(
    "happens once although each report of a first attempt is lost",
    async () => {
      const { project } = packed();
      const flags = ["--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund"];
      await run("npm", ["install", ...flags, ...PACKAGES], { cwd: project, timeout: INSTALL_TIMEOUT_MS });
      await cp(EXAMPLES, join(project, "examples"), { recursive: true });
      const { apiKey } = await createTenant(database);
      const env = {
        ...process.env,
        ONCEWARD_ADDRESS: `http://127.0.0.1:${server.grpcPort}`,
        ONCEWARD_API_KEY: apiKey,
        TEMPORAL_ADDRESS: await startTemporal(),
      };
      const options = { cwd: project, env, timeout: EXAMPLE_TIMEOUT_MS };
      const { stdout } = await run(process.execPath, ["examples/temporal/charge.ts"], options);
      expect(stdout.trim().split("\n")).toEqual([
        "proved: 20 attempts, two for each of 10 orders",
        "proved: 10 charges",
        "proved: 10 different charges in the answers",
      ]);
    },
    INSTALL_TIMEOUT_MS + EXAMPLE_TIMEOUT_MS,
  );
});

/** Starts a development server that keeps its data in memory; ends it when the test ends. Returns its address. */
async function startTemporal(): Promise<string> {
  const port = await freePort();
  const args = [
    "server",
    "start-dev",
    "--headless",
    "--ip",
    "127.0.0.1",
    "--port",
    String(port),
    "--log-level",
    "error",
  ];
  const child = spawn("temporal", args, { env: { ...process.env, PATH }, stdio: "ignore" });
  onTestFinished(async () => {
    child.kill();
    if (child.exitCode === null) await once(child, "exit");
  });
  const accepts = () =>
    new Promise<boolean>((resolve) => {
      const socket = connect(port, "127.0.0.1", () => resolve(true)).on("error", () => resolve(false));
      socket.once("connect", () => socket.destroy());
    });
  await expect.poll(accepts, { timeout: 30_000 }).toBe(true);
  return `127.0.0.1:${port}`;
}
