import { chown, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { SUPERUSER } from "./cluster.ts";
import type { Postmaster } from "./pid-file.ts";
import { canEnter, type ServerUser } from "./server-user.ts";

const PREFIX = "onceward-";

// A socket's path has at most 104 bytes on macOS and 108 on Linux, with its final zero byte. mkdtemp appends
// six letters.
const PARENT_LIMIT_BYTES = 103 - `/${PREFIX}XXXXXX/.s.PGSQL.5432`.length;

/**
 * Creates a directory for the server's socket that only its user (and root) can enter. There is no other
 * authentication.
 */
export async function makeSocketDir(user: ServerUser | undefined): Promise<string> {
  const socketDir = await mkdtemp(join(await socketParent(user), PREFIX));
  if (user !== undefined) await chown(socketDir, user.uid, user.gid);
  return socketDir;
}

/** Removes a socket directory of ours; ignores others, such as that of a server started by hand. */
export async function removeSocketDir(socketDir: string): Promise<void> {
  if (!basename(socketDir).startsWith(PREFIX)) return;
  await rm(socketDir, { recursive: true, force: true });
}

/** Returns the connection URL of a database, for `pg` and libpq. */
export function urlOf({ port, socketDir }: Postmaster, database: string): string {
  // A URL's authority cannot contain a directory. It contains the port, so that PGPORT has no effect.
  const authority = `${SUPERUSER}@localhost:${port}`;
  return `postgresql://${authority}/${encodeURIComponent(database)}?host=${encodeURIComponent(socketDir)}`;
}

async function socketParent(user: ServerUser | undefined): Promise<string> {
  const parent = tmpdir();
  if (Buffer.byteLength(parent) > PARENT_LIMIT_BYTES) return "/tmp";
  return user === undefined || (await canEnter(parent, user)) ? parent : "/tmp";
}
