import { execFile } from "node:child_process";
import { chown, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { promisify } from "node:util";
import pg from "pg";
import { onTestFinished } from "vitest";
import { makeDataDir } from "../processes/data-dir.ts";
import type { TestDatabase } from "./database.ts";

const run = promisify(execFile);
const DISK_MIB = 24;

/** Opens a connection as a person at psql does; it is closed when the test ends. */
export async function connectAsPerson(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, application_name: "psql" });
  client.on("error", () => {});
  await client.connect();
  onTestFinished(() => client.end().catch(() => {}));
  return client;
}

/** Opens connections for as long as Postgres accepts them, and keeps them. */
export function openGreedily(url: string) {
  let [stopped, refusals] = [false, 0];
  const opening = (async () => {
    while (!stopped) {
      await connectAsPerson(url).catch(() => {
        refusals++;
        return setTimeout(5);
      });
    }
  })();
  return {
    /** How often Postgres has refused one. */
    refusals: () => refusals,
    async stop() {
      stopped = true;
      await opening;
    },
  };
}

/**
 * Moves a table to a disk of its own, which must be mountable, and fills that. When the test ends, the table is back.
 *
 * @param dataDir of the Postgres, whose user owns the disk.
 * @returns the file that fills the disk.
 */
export async function fillTable(
  database: Pick<TestDatabase, "query">,
  table: string,
  dataDir: string,
): Promise<string> {
  const disk = await makeDataDir("ow-small-disk-");
  await run("mount", ["-t", "tmpfs", "-o", `size=${DISK_MIB}M`, "tmpfs", disk]);
  onTestFinished(async () => {
    await run("umount", ["--lazy", disk]);
    await rm(disk, { recursive: true, force: true });
  });
  const { uid, gid } = await stat(dataDir);
  await chown(disk, uid, gid);
  await database.query(`create tablespace small location '${disk}'`);
  const filler = join(disk, "a dump that was left here");
  onTestFinished(async () => {
    await rm(filler, { force: true });
    await database.query(`alter table ${table} set tablespace pg_default`);
    await database.query("drop tablespace small");
  });
  await database.query(`alter table ${table} set tablespace small`);
  await writeFile(filler, Buffer.alloc(DISK_MIB * 1024 * 1024)).catch(() => {});
  return filler;
}
