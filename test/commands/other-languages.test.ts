import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { createWorkplace, type Workplace } from "../helpers/command.ts";
import { type Dev, pressCtrlC, startDev } from "../helpers/dev.ts";
import { codeBlocks, firstBlock } from "../helpers/readme.ts";

const run = promisify(execFile);
const README = "clients/README.md";
const PROTO = fileURLToPath(new URL("../../proto", import.meta.url));
const BUF = fileURLToPath(new URL("../../node_modules/.bin/buf", import.meta.url));
const TIMEOUT_MS = 30_000;

const python = await findPython();
if (python === undefined) {
  process.stderr.write(
    "The Python client is left out: no python3 can import grpc (apt install python3-grpcio).\n",
  );
}
const hasGrpcurl = await succeeds("grpcurl", ["-version"]);

test.runIf(python)("the README's Python claims, completes and is replayed to", async () => {
  const workplace = await createWorkplace();
  const dev = await startDev(workplace);
  await run(BUF, ["build", PROTO, "-o", join(workplace.dir, "onceward.binpb")], { timeout: TIMEOUT_MS });
  const script = await firstBlock(README, "python");
  await writeFile(join(workplace.dir, "charge.py"), script.replace("127.0.0.1:50051", addressOf(dev)));
  const printed = await runThere(workplace, dev, python ?? "", ["charge.py"]);
  expect(printed).toBe('{"charge": "ch_1"} {"charge": "ch_1"}\n');
  await pressCtrlC(dev);
});

test.runIf(hasGrpcurl)("the README's grpcurl claims and completes", async () => {
  const workplace = await createWorkplace();
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

/** What a program prints that has the caller's key. */
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

/** The first Python that has grpcio; the system's may have it where another one comes first on the PATH. */
async function findPython(): Promise<string | undefined> {
  for (const candidate of ["python3", "/usr/bin/python3"]) {
    if (await succeeds(candidate, ["-c", "import grpc, google.protobuf"])) return candidate;
  }
  return undefined;
}

function succeeds(program: string, args: readonly string[]): Promise<boolean> {
  return run(program, [...args], { timeout: TIMEOUT_MS }).then(
    () => true,
    () => false,
  );
}
