import { chown, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { SUPERUSER } from "./cluster.ts";
import type { Postmaster } from "./pid-file.ts";
import { canEnter, type ServerUser } from "./server-user.ts";

const PREFIX = "onceward-";

// A socket's path ends with a zero byte and has 104 bytes at most on macOS, 108 on Linux. mkdtemp appends six letters.
const PARENT_LIMIT_BYTES = 103 - `/${PREFIX}XXXXXX/.s.PGSQL.5432`.length;

/** A new directory for the server's socket, which only its user (and root) can enter: that is all the authentication. */
export async function makeSocketDir(user: ServerUser | undefined): Promise<string> {
  const socketDir = await mkdtemp(join(await socketParent(user), PREFIX));
  if (user !== undefined) await chown(socketDir, user.uid, user.gid);
  return socketDir;
}

/** Removes a socket directory of ours; one that somebody else chose (a server started by hand) is left alone. */
export async function removeSocketDir(socketDir: string): Promise<void> {
  if (!basename(socketDir).startsWith(PREFIX)) return;
  await rm(socketDir, { recursive: true, force: true });
}

/** The connection URL of a database, for `pg` and for libpq. */
export function urlOf({ port, socketDir }: Postmaster, database: string): string {
  // A directory has no place in a URL's authority. The port stands there so that PGPORT doesn't count.
  const authority = `${SUPERUSER}@localhost:${port}`;
  return `postgresql://${authority}/${encodeURIComponent(database)}?host=${encodeURIComponent(socketDir)}`;
}

async function socketParent(user: ServerUser | undefined): Promise<string> {
  const parent = tmpdir();
  if (Buffer.byteLength(parent) > PARENT_LIMIT_BYTES) return "/tmp";
  return user === undefined || (await canEnter(parent, user)) ? parent : "/tmp";
}
