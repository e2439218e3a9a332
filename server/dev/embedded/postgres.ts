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

// The holder of the lock may create the cluster and start it: the sum of both limits.
const LOCK_TIMEOUT_MS = 200_000;
// A killed process ends quickly, once it gets CPU time.
const DEATH_TIMEOUT_MS = 2000;

/** Options of an embedded server. */
export type EmbeddedPostgresOptions = {
  /** The data directory, created if needed. `<dataDir>.log` and `<dataDir>.lock` are beside it. */
  readonly dataDir: string;
  /**
   * Settings as in postgresql.conf. Only the process that starts the server applies them, not one that adopts
   * it.
   */
  readonly settings?: Readonly<Record<string, string>>;
  /** A bin directory with `postgres` and `initdb`, in place of the one that npm installed. */
  readonly binaries?: string;
  /** Directories that the server's user can reach, in place of {@link SHELTERS}. */
  readonly shelters?: readonly string[];
};

/** This process's share in a running server. */
export type EmbeddedPostgres = {
  /** The connection URL of a database, for `pg` and for libpq. `postgres` always exists. */
  readonly url: (database: string) => string;
  /** The server's version, such as `18.4`. */
  readonly version: string;
  /** True if the server was already running. */
  readonly adopted: boolean;
  /** The postmaster's process number, for tests that kill it. */
  readonly pid: number;
  /**
   * Ends this process' use of the server; the last process stops it. Close all connections before, because a
   * connection counts as a use. Can be called repeatedly.
   */
  readonly stop: () => Promise<void>;
};

/**
 * Starts a PostgreSQL on a data directory, or adopts the running one. Creates the data on first use. The
 * server listens on a Unix socket only, and all processes that start it share it.
 *
 * @throws Error with the reason and, if available, the end of the server's log. All waits are bounded.
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

/** Connects to the server of this data, or starts it. */
async function join(place: string, start: () => Promise<Postmaster>): Promise<Joined> {
  const running = await findPostmaster(place);
  const postmaster = running ?? (await start());
  try {
    const presence = await announcePresence(urlOf(postmaster, "postgres"));
    return { postmaster, presence, adopted: running !== undefined };
  } catch (cause) {
    // A server that was just killed is visible until its process has ended.
    const wasDying = running && (await waitUntil(() => !isPostmaster(postmaster.pid), DEATH_TIMEOUT_MS));
    if (wasDying) return await join(place, start);
    if (running === undefined) await leaveUnannounced(postmaster);
    const where = `process ${postmaster.pid}, which ${place}/postmaster.pid names`;
    throw new Error(`PostgreSQL (${where}) does not answer at ${postmaster.socketDir}: ${cause}`, { cause });
  }
}

// Under the lock, so that no process adopts the server between the count and the shutdown.
async function leave(postmaster: Postmaster, presence: Presence): Promise<void> {
  const needed = await presence.hasCompany();
  await presence.end();
  if (!needed) await leaveUnannounced(postmaster);
}

async function leaveUnannounced(postmaster: Postmaster): Promise<void> {
  await shutDown(postmaster);
  await removeSocketDir(postmaster.socketDir);
}
