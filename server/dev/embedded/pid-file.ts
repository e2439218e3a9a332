import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { basename, join } from "node:path";

/** A running server: its process, and the directory and port its socket is named after. */
export type Postmaster = { readonly pid: number; readonly port: number; readonly socketDir: string };

/**
 * The contents of `postmaster.pid`. The status is `starting`, `ready` or `stopping`; a crash leaves it
 * unchanged.
 */
export type PidFile = Postmaster & { readonly status: string; readonly sharedMemoryId: number };

/**
 * Reads a data directory's `postmaster.pid`; undefined if it does not exist, as after an orderly shutdown.
 *
 * Line by line: process, data directory, start time, port, socket directory, TCP address, shared memory key
 * and id, status. They are written one after the other while the server starts. Source:
 * src/include/utils/pidfile.h in PostgreSQL.
 */
export async function readPidFile(dataDir: string): Promise<PidFile | undefined> {
  let text: string;
  try {
    text = await readFile(join(dataDir, "postmaster.pid"), "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  const [pid, , , port, socketDir = "", , sharedMemory = "", status = ""] = text.split("\n");
  // An empty file has no process number yet; 0 would mean our own process group.
  return {
    pid: Number(pid) || -1,
    port: Number(port),
    socketDir,
    sharedMemoryId: Number(sharedMemory.trim().split(/\s+/)[1] ?? -1),
    status: status.trim() || "starting",
  };
}

/**
 * Returns whether a process is alive and, on systems with /proc, is a postmaster: process numbers are reused,
 * soon in a container, and a zombie has an empty command line.
 */
export function isPostmaster(pid: number): boolean {
  if (!isAlive(pid)) return false;
  if (process.platform !== "linux") return true;
  try {
    // A postmaster's children are named "postgres: …" and do not match.
    const [program = ""] = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
    return basename(program) === "postgres";
  } catch {
    return false;
  }
}

/** Returns whether a process with this number exists, of any user. */
export function isAlive(pid: number): boolean {
  return pid > 0 && signalProcess(pid, 0);
}

/**
 * Sends a signal; returns false if the process does not exist. Another user's process does not receive it.
 */
export function signalProcess(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(pid, signal);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
