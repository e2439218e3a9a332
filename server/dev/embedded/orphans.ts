import { readFile } from "node:fs/promises";

/**
 * Returns how many processes are attached to a System V shared memory segment. Every process of a PostgreSQL
 * server is attached: after its postmaster was killed, the number counts the remaining children. Returns 0
 * where the system does not report the number (macOS): PostgreSQL's own check at the start has to suffice
 * there.
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
