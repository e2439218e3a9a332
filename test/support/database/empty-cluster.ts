import { execFile } from "node:child_process";
import { createHash, randomUUID } from "node:crypto";
import { access, mkdir, readFile, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { packagedBinaries } from "../../../server/dev/embedded/binaries.ts";
import { ensureCluster } from "../../../server/dev/embedded/cluster.ts";
import { chooseServerUser } from "../../../server/dev/embedded/server-user.ts";
import { reachableBinaries, SHELTERS } from "../../../server/dev/embedded/shelter.ts";
import { makeDataDir } from "../processes/data-dir.ts";

const run = promisify(execFile);

/** The arguments of initdb are here. */
const CLUSTER_SOURCE = new URL("../../../server/dev/embedded/cluster.ts", import.meta.url);
const CACHE = fileURLToPath(new URL("../../../node_modules/.cache/", import.meta.url));

/**
 * Makes `dataDir` an empty cluster of the packaged PostgreSQL, as if it had been started once: a copy takes a fifteenth of the
 * processor time of initdb. All copies have the same system identifier. Does nothing if there is a cluster already.
 */
export async function copyEmptyCluster(dataDir: string): Promise<void> {
  if (await exists(dataDir)) return;
  const original = join(CACHE, `cluster-${await fingerprint()}`);
  if (!(await exists(original))) await makeOriginal(original);
  await copy(original, dataDir);
}

/** Of what decides the contents of an empty cluster. */
async function fingerprint(): Promise<string> {
  const initdb = join(packagedBinaries(), "initdb");
  const { size, mtimeMs } = await stat(initdb);
  const text = `${initdb} ${size} ${mtimeMs} ${await readFile(CLUSTER_SOURCE, "utf8")}`;
  return createHash("sha256").update(text).digest("hex").slice(0, 12);
}

async function makeOriginal(original: string): Promise<void> {
  // Where the server's user can enter.
  const dir = await makeDataDir("ow-cluster-");
  try {
    const data = join(dir, "data");
    const user = await chooseServerUser(data);
    await ensureCluster(data, await reachableBinaries(packagedBinaries(), user, SHELTERS), user, false);
    await copy(data, original);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

/**
 * Copies a directory with owners and modes, without which Postgres refuses the data. Of processes that do this at the same time, the
 * first rename wins.
 */
async function copy(from: string, to: string): Promise<void> {
  const half = `${to}-${randomUUID()}`;
  await mkdir(dirname(to), { recursive: true });
  try {
    await run("cp", ["-a", from, half]);
    await rename(half, to);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOTEMPTY") throw error;
  } finally {
    await rm(half, { recursive: true, force: true });
  }
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
