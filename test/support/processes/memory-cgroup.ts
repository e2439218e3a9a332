import { execFile } from "node:child_process";
import { existsSync, mkdirSync, rmdirSync, writeFileSync } from "node:fs";
import { promisify } from "node:util";

/** Where groups are made, and the file of a group's limit: version 2 of cgroups, then version 1. */
const HIERARCHIES = [
  { root: "/sys/fs/cgroup", limit: "memory.max" },
  { root: "/sys/fs/cgroup/memory", limit: "memory.limit_in_bytes" },
];

/** A group of processes that the kernel gives no more memory than its limit. */
export interface MemoryCgroup extends Disposable {
  /** Runs a program in the group. Resolves with its output. @throws the error of a program that fails. */
  run(program: string, args: readonly string[]): Promise<string>;
  /** The arguments with which a process of Node joins the group before it loads its program. */
  readonly joinAsNode: readonly string[];
}

/** Makes a group; undefined where that is not possible: without root, and in most containers. The caller disposes it. */
export function createMemoryCgroup(limitBytes: number): MemoryCgroup | undefined {
  const dir = HIERARCHIES.map(({ root, limit }) => makeGroup(root, limit, limitBytes)).find(Boolean);
  if (dir === undefined) return undefined;
  return {
    async run(program, args) {
      // The shell joins the group before it becomes the program.
      const join = 'echo $$ > "$0/cgroup.procs" && exec "$@"';
      return (await promisify(execFile)("sh", ["-c", join, dir, program, ...args])).stdout;
    },
    joinAsNode: [
      "--import",
      `data:text/javascript,import{writeFileSync}from"node:fs";writeFileSync("${dir}/cgroup.procs",` +
        "String(process.pid))",
    ],
    [Symbol.dispose]: () => rmdirSync(dir),
  };
}

/** Returns whether groups with a memory limit can be made here. */
export function canLimitMemory(): boolean {
  using group = createMemoryCgroup(2 ** 30);
  return group !== undefined;
}

function makeGroup(root: string, limit: string, limitBytes: number): string | undefined {
  const dir = `${root}/onceward-test-${process.pid}`;
  try {
    mkdirSync(dir);
  } catch {
    return undefined;
  }
  // The kernel makes the file, if the directory is in a hierarchy that can limit memory.
  if (existsSync(`${dir}/${limit}`)) {
    writeFileSync(`${dir}/${limit}`, `${limitBytes}`);
    return dir;
  }
  rmdirSync(dir);
  return undefined;
}
