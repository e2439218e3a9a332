import { mkdir } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { assertRuns, packagedBinaries } from "./binaries.ts";
import { ensureCluster, locateData } from "./cluster.ts";
import { withLock } from "./lock.ts";
import { isPostmaster, type Postmaster } from "./pid-file.ts";
import { findPostmaster, launch, shutDown } from "./postmaster.ts";
import { announcePresence, type Presence } from "./presence.ts";
import { chooseServerUser, type ServerUser } from "./server-user.ts";
import { reachableBinaries, SHELTERS } from "./shelter.ts";
import { makeSocketDir, removeSocketDir, urlOf } from "./socket.ts";
import { waitUntil } from "./wait.ts";

// Whoever holds the lock may be creating the cluster and then starting it; their limits add up to this.
const LOCK_TIMEOUT_MS = 200_000;
// A killed process is gone within moments, once it has a core to die on.
const DEATH_TIMEOUT_MS = 2000;

/** What to start, and where. */
export type EmbeddedPostgresOptions = {
  /** The data directory, created if need be. `<dataDir>.log` and `<dataDir>.lock` lie beside it. */
  readonly dataDir: string;
  /** Settings as in postgresql.conf; they count for the process that starts the server, not for one that adopts it. */
  readonly settings?: Readonly<Record<string, string>>;
  /** A bin directory with `postgres` and `initdb`, in place of the ones npm installed. */
  readonly binaries?: string;
  /** Places that the server's user can reach, in place of {@link SHELTERS}. */
  readonly shelters?: readonly string[];
};

/** This process's share in a running server. */
export type EmbeddedPostgres = {
  /** The connection URL of a database, for `pg` and for libpq. `postgres` always exists. */
  readonly url: (database: string) => string;
  /** As the server says it, such as `18.4`. */
  readonly version: string;
  /** True when the server was running already. */
  readonly adopted: boolean;
  /** The postmaster's process, for tests that let it crash. */
  readonly pid: number;
  /**
   * Gives up our share; the last one out shuts the server down. Close your own connections first, because whoever is
   * connected counts as somebody who still needs it. May be called again.
   */
  readonly stop: () => Promise<void>;
};

/**
 * A real PostgreSQL on a data directory of our own: created on first use, started unless it runs already, shared
 * with every other process that starts it, listening on a Unix socket only.
 *
 * @throws with the reason and, where the server gave one, the end of its log. Every wait inside is bounded.
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const dataDir = resolve(options.dataDir);
  const user = await chooseServerUser(dataDir);
  await mkdir(dirname(dataDir), { recursive: true });
  const lockFile = `${dataDir}.lock`;
  return await withLock(lockFile, LOCK_TIMEOUT_MS, async () => {
    const place = await locateData(dataDir, user, options.shelters ?? SHELTERS);
    const { postmaster, presence, adopted } = await join(place, () =>
      startServer(dataDir, place, user, options),
    );
    let stopped: Promise<void> | undefined;
    return {
      url: (database) => urlOf(postmaster, database),
      version: presence.version,
      adopted,
      pid: postmaster.pid,
      stop: () => {
        stopped ??= withLock(lockFile, LOCK_TIMEOUT_MS, () => leave(postmaster, presence));
        return stopped;
      },
    };
  });
}

async function startServer(
  dataDir: string,
  place: string,
  user: ServerUser | undefined,
  { binaries = packagedBinaries(), settings = {}, shelters = SHELTERS }: EmbeddedPostgresOptions,
): Promise<Postmaster> {
  await assertRuns(binaries);
  const binDir = await reachableBinaries(binaries, user, shelters);
  await ensureCluster(place, binDir, user, settings.fsync !== "off");
  const socketDir = await makeSocketDir(user);
  try {
    return await launch({ binDir, dataDir: place, socketDir, settings, logFile: `${dataDir}.log`, user });
  } catch (error) {
    await removeSocketDir(socketDir);
    throw error;
  }
}

interface Joined {
  readonly postmaster: Postmaster;
  readonly presence: Presence;
  readonly adopted: boolean;
}

/** Connects to the server that runs on this data, or else starts one. */
async function join(place: string, start: () => Promise<Postmaster>): Promise<Joined> {
  const running = await findPostmaster(place);
  const postmaster = running ?? (await start());
  try {
    const presence = await announcePresence(urlOf(postmaster, "postgres"));
    return { postmaster, presence, adopted: running !== undefined };
  } catch (cause) {
    // A server that was just killed is seen until it is gone.
    const wasDying = running && (await waitUntil(() => !isPostmaster(postmaster.pid), DEATH_TIMEOUT_MS));
    if (wasDying) return await join(place, start);
    if (running === undefined) await leaveUnannounced(postmaster);
    const where = `process ${postmaster.pid}, which ${place}/postmaster.pid names`;
    throw new Error(`PostgreSQL (${where}) does not answer at ${postmaster.socketDir}: ${cause}`, { cause });
  }
}

// Under the lock: nobody can adopt the server between the count and the shutdown.
async function leave(postmaster: Postmaster, presence: Presence): Promise<void> {
  const needed = await presence.hasCompany();
  await presence.end();
  if (!needed) await leaveUnannounced(postmaster);
}

async function leaveUnannounced(postmaster: Postmaster): Promise<void> {
  await shutDown(postmaster);
  await removeSocketDir(postmaster.socketDir);
}
