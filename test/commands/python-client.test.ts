import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { createWorkplace, runCommand } from "../helpers/command.ts";
import { useOwnPostgres } from "../helpers/own-postgres.ts";
import { settingsFor, startServe } from "../helpers/serve.ts";

const run = promisify(execFile);
const CLIENT = fileURLToPath(new URL("python/claim.py", import.meta.url));
const TIMEOUT_MS = 30_000;

const python = await findPython();
if (python === undefined) {
  process.stderr.write(
    "The Python client is left out: no python3 can import grpc (apt install python3-grpcio).\n",
  );
}

const postgres = useOwnPostgres();

test.runIf(python)(
  "a Python client that knows only reflection claims, completes and is replayed to",
  async () => {
    const workplace = await createWorkplace();
    const settings = settingsFor(await postgres.createDatabase());
    const { grpcPort } = await startServe(workplace, settings);
    const { stdout: apiKey } = await runCommand(["tenant-key", "--tenant", "acme"], workplace, settings);
    const args = [CLIENT, `127.0.0.1:${grpcPort}`, apiKey.trim()];
    const { stdout } = await run(python ?? "", args, { timeout: TIMEOUT_MS });
    expect(JSON.parse(stdout)).toEqual({
      first: "claimed",
      second: "completed",
      payload: '{"charge": "ch_1"}',
      contentType: "application/json",
    });
  },
);

/** The first Python that has grpcio; the system's may have it where another one comes first on the PATH. */
async function findPython(): Promise<string | undefined> {
  for (const candidate of ["python3", "/usr/bin/python3"]) {
    const found = run(candidate, ["-c", "import grpc, google.protobuf"], { timeout: TIMEOUT_MS });
    if (
      await found.then(
        () => true,
        () => false,
      )
    )
      return candidate;
  }
  return undefined;
}
