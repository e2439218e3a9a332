import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { waitUntil } from "../../../server/dev/embedded/wait.ts";
import { makeDataDir } from "../processes/data-dir.ts";

/** A NATS server with JetStream of its own for a test, on a loopback port. */
export interface NatsServer {
  /** `127.0.0.1:…`. */
  readonly address: string;
  stop(): Promise<void>;
}

const START_TIMEOUT_MS = 60_000;

/** Runs the server until standard input ends, as it does when the tests are killed. */
const WATCHED = `"$@" & server=$!; read -r _; kill -9 $server 2>/dev/null; wait`;

/** Starts an empty server on a free port, and resolves once it listens. It ends with the test process. */
export async function startNatsServer(program: string): Promise<NatsServer> {
  const dir = await makeDataDir("ow-nats-");
  const listen = ["--addr", "127.0.0.1", "--port", "-1", "--ports_file_dir", dir];
  const args = [program, ...listen, "--jetstream", "--store_dir", join(dir, "data")];
  const child = spawn("sh", ["-c", WATCHED, "sh", ...args], { stdio: ["pipe", "ignore", "ignore"] });
  const exited = once(child, "exit");
  const stop = async () => {
    child.stdin.end();
    await exited;
    await rm(dir, { recursive: true, force: true });
  };
  let address: string | undefined;
  const listens = async () => {
    address = await addressIn(dir);
    return address !== undefined;
  };
  if (!(await waitUntil(listens, START_TIMEOUT_MS)) || address === undefined) {
    await stop();
    throw new Error("NATS has not started in time");
  }
  return { address, stop };
}

/** Returns the address in the file of ports, which the server writes once it listens; undefined: not yet. */
async function addressIn(dir: string): Promise<string | undefined> {
  const file = (await readdir(dir)).find((name) => name.endsWith(".ports"));
  if (file === undefined) return undefined;
  try {
    const { nats } = JSON.parse(await readFile(join(dir, file), "utf8")) as { nats: string[] };
    return nats[0]?.replace("nats://", "");
  } catch {
    // The file is not whole yet.
    return undefined;
  }
}
