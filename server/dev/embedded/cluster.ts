import { execFile } from "node:child_process";
import {
  chmod,
  chown,
  lstat,
  mkdir,
  mkdtemp,
  readlink,
  realpath,
  rename,
  rm,
  rmdir,
  stat,
  symlink,
} from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { canEnter, type ServerUser } from "./server-user.ts";
import { openShelter } from "./shelter.ts";

const run = promisify(execFile);

// initdb takes 1–3 s; a busy laptop with a slow disk and fsync can take ten times as long.
const INITDB_TIMEOUT_MS = 120_000;

/**
 * The superuser of every embedded cluster. It needs no password, because only the server's user can reach the
 * socket.
 */
export const SUPERUSER = "onceward";

/** Excludes the caller's environment (PGPORT, LC_*, TZ), which would change the server's behaviour. */
export const SERVER_ENVIRONMENT: NodeJS.ProcessEnv = { LC_ALL: "C", TZ: "UTC" };

/**
 * Returns the directory of the data: `dataDir`, or if the server's user cannot reach it, a new directory in a
 * shelter, to which `dataDir` becomes a symbolic link.
 *
 * @throws Error if existing data is in a directory that the server's user cannot reach.
 */
export async function locateData(
  dataDir: string,
  user: ServerUser | undefined,
  shelters: readonly string[],
): Promise<string> {
  const place = await followLink(dataDir);
  if (user === undefined || (await canEnter(dirname(place), user))) return place;
  if (await isCluster(place)) {
    throw new Error(
      `user ${user.uid}, who has to run PostgreSQL, cannot reach the data in ${place}: move it to a directory ` +
        `that everybody can enter and leave a symbolic link to it at ${dataDir}`,
    );
  }
  const slug = dataDir
    .replace(/[^A-Za-z0-9]+/g, "-")
    .replace(/^-/, "")
    .slice(-80);
  const home = await mkdtemp(join(await openShelter(shelters, user), `${slug}-`));
  await chmod(home, 0o755);
  await rmdir(dataDir).catch(unlessMissing);
  await symlink(join(home, "data"), dataDir);
  return join(home, "data");
}

/**
 * Creates an empty cluster (UTF-8, C collation) at `place` unless it exists. Creates it beside `place` and
 * renames it, so that an incomplete cluster is never used.
 *
 * @throws Error with the output of initdb.
 */
export async function ensureCluster(
  place: string,
  binDir: string,
  user: ServerUser | undefined,
  durable: boolean,
): Promise<void> {
  if (await isCluster(place)) return;
  const half = `${place}.init`;
  await rm(half, { recursive: true, force: true });
  await mkdir(half, { mode: 0o700 });
  if (user !== undefined) await chown(half, user.uid, user.gid);
  try {
    await run(join(binDir, "initdb"), initdbArguments(half, durable), {
      cwd: "/",
      env: SERVER_ENVIRONMENT,
      timeout: INITDB_TIMEOUT_MS,
      ...user,
    });
    await rename(half, place);
  } catch (cause) {
    await rm(half, { recursive: true, force: true });
    const { stderr = "" } = cause as { stderr?: string };
    throw new Error(`could not create the PostgreSQL cluster ${place}: ${stderr.trim() || cause}`, { cause });
  }
}

function initdbArguments(dataDir: string, durable: boolean): string[] {
  const identity = ["--username", SUPERUSER, "--auth", "trust"];
  const text = ["--encoding", "UTF8", "--locale", "C"];
  return ["--pgdata", dataDir, ...identity, ...text, "--no-instructions", ...(durable ? [] : ["--no-sync"])];
}

async function followLink(dataDir: string): Promise<string> {
  const found = await lstat(dataDir).catch(unlessMissing);
  const place = found?.isSymbolicLink() ? resolve(dirname(dataDir), await readlink(dataDir)) : dataDir;
  // The link can outlive its target if a shelter under /tmp was cleaned up.
  await mkdir(dirname(place), { recursive: true });
  return join(await realpath(dirname(place)), basename(place));
}

async function isCluster(place: string): Promise<boolean> {
  return (await stat(join(place, "PG_VERSION")).catch(unlessMissing)) !== undefined;
}

function unlessMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT") throw error;
}
