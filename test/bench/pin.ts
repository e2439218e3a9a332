import { execFile } from "node:child_process";
import { availableParallelism } from "node:os";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Lets a process, all its threads, run on the last core only; false where there is no `taskset`. */
export async function pinToOneCore(pid: number): Promise<boolean> {
  try {
    await run("taskset", ["-a", "-c", "-p", String(availableParallelism() - 1), String(pid)]);
    return true;
  } catch {
    return false;
  }
}
