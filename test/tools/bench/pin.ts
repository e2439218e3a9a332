import { execFile } from "node:child_process";
import { availableParallelism } from "node:os";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Pins all threads of a process to the last core; false if there is no `taskset`. */
export async function pinToOneCore(pid: number): Promise<boolean> {
  try {
    await run("taskset", ["-a", "-c", "-p", String(availableParallelism() - 1), String(pid)]);
    return true;
  } catch {
    return false;
  }
}
