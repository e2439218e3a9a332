import { readFile } from "node:fs/promises";

/**
 * How many processes are attached to a System V shared memory segment. Every process of a PostgreSQL server is, so
 * after its postmaster was killed this counts the children that haven't noticed yet. 0 where the system doesn't tell
 * (macOS): there PostgreSQL's own check at start has to do.
 */
export async function countAttached(sharedMemoryId: number): Promise<number> {
  const table = await readFile("/proc/sysvipc/shm", "utf8").catch(() => "");
  for (const line of table.split("\n")) {
    // key, shmid, perms, size, cpid, lpid, nattch. Source: sysvipc(5).
    const [, id, , , , , attached] = line.trim().split(/\s+/);
    if (id === String(sharedMemoryId)) return Number(attached);
  }
  return 0;
}
