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

// initdb takes 1–3 s; a busy laptop with a slow disk and fsync may take ten times that.
const INITDB_TIMEOUT_MS = 120_000;

/** The superuser of every embedded cluster; trusted, because only its own user can reach the socket. */
export const SUPERUSER = "onceward";

/** Nothing of the caller's environment (PGPORT, LC_*, TZ) may change how the server behaves. */
export const SERVER_ENVIRONMENT: NodeJS.ProcessEnv = { LC_ALL: "C", TZ: "UTC" };

/**
 * Where the data is or will be. Usually `dataDir` itself; where the server's user can't reach that, a new directory
 * in a shelter, to which `dataDir` becomes a symbolic link: the next run and a curious person find it by the link.
 *
 * @throws when there is data already at a place that the server's user cannot reach.
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
 * Makes an empty cluster (UTF-8, C collation) at `place` unless there is one. It is made beside the place and renamed,
 * so a half-made one is never taken for a whole one.
 *
 * @throws with initdb's words when it fails.
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
  // The link outlives its target where a shelter under /tmp was swept away.
  await mkdir(dirname(place), { recursive: true });
  return join(await realpath(dirname(place)), basename(place));
}

async function isCluster(place: string): Promise<boolean> {
  return (await stat(join(place, "PG_VERSION")).catch(unlessMissing)) !== undefined;
}

function unlessMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT") throw error;
}
