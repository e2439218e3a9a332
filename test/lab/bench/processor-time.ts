import { readdir, readFile } from "node:fs/promises";

/** Clock ticks per second in `/proc`, on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100;

interface Times {
  readonly parent: number;
  /** Of the process, in seconds. */
  readonly ownS: number;
  /** Of its children that have ended, in seconds. */
  readonly endedChildrenS: number;
}

/** Returns the processor time that a process has used, in seconds. */
export async function processorTimeOf(pid: number): Promise<number> {
  return (await readTimes(pid)).ownS;
}

/** Returns the processor time that a process and its children have used, in seconds. */
export async function processorTimeOfFamily(pid: number): Promise<number> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name)).map(Number);
  // A process that ends in between is counted with its parent's children that have ended.
  const others = await Promise.all(pids.map((each) => readTimes(each).catch(() => undefined)));
  const children = others.filter((times) => times?.parent === pid);
  const { ownS, endedChildrenS } = await readTimes(pid);
  return children.reduce((sum, times) => sum + (times?.ownS ?? 0), ownS + endedChildrenS);
}

/** Returns the parent of a process. */
export async function parentOf(pid: number): Promise<number> {
  return (await readTimes(pid)).parent;
}

/** The fields of proc(5) after the name of the program, which may contain spaces. */
async function readTimes(pid: number): Promise<Times> {
  const text = await readFile(`/proc/${pid}/stat`, "utf8");
  const fields = text
    .slice(text.lastIndexOf(")") + 2)
    .split(" ")
    .map(Number);
  const seconds = (first: number) => ((fields[first] ?? 0) + (fields[first + 1] ?? 0)) / TICKS_PER_SECOND;
  return { parent: fields[1] ?? 0, ownS: seconds(11), endedChildrenS: seconds(13) };
}
