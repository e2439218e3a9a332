import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { packagedBinaries } from "../../../server/dev/embedded/binaries.ts";
import { ensureCluster } from "../../../server/dev/embedded/cluster.ts";
import { chooseServerUser } from "../../../server/dev/embedded/server-user.ts";
import { reachableBinaries, SHELTERS } from "../../../server/dev/embedded/shelter.ts";
import { copyCached, exists } from "../cached-copy.ts";

/** The arguments of initdb are here. */
const CLUSTER_SOURCE = new URL("../../../server/dev/embedded/cluster.ts", import.meta.url);

/**
 * Makes `dataDir` an empty cluster of the packaged PostgreSQL, as if it had been started once: a copy takes a fifteenth of the
 * processor time of initdb. All copies have the same system identifier. Does nothing if there is a cluster already.
 */
export async function copyEmptyCluster(dataDir: string): Promise<void> {
  if (await exists(dataDir)) return;
  const initdb = join(packagedBinaries(), "initdb");
  const { size, mtimeMs } = await stat(initdb);
  const inputs = [`${initdb} ${size} ${mtimeMs}`, await readFile(CLUSTER_SOURCE)];
  await copyCached({ kind: "cluster", inputs, make: makeCluster }, dataDir);
}

async function makeCluster(dataDir: string): Promise<void> {
  const user = await chooseServerUser(dataDir);
  await ensureCluster(dataDir, await reachableBinaries(packagedBinaries(), user, SHELTERS), user, false);
}
