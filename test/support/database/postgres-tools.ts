import { access, chmod, chown, constants, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import { findSystemPostgres } from "../../../server/dev/embedded/binaries.ts";
import { readPidFile } from "../../../server/dev/embedded/pid-file.ts";
import { shutDown } from "../../../server/dev/embedded/postmaster.ts";
import { chooseServerUser } from "../../../server/dev/embedded/server-user.ts";
import type { Workplace } from "../processes/command.ts";
import { TEST_PEPPER } from "../servers/server.ts";

const MAIN = fileURLToPath(new URL("../../../server/src/main.ts", import.meta.url));
/** The newest first. The packaged PostgreSQL has no tools for backups. */
const MAJORS = [18, 17, 16, 15];

/** Returns the directory of an installed PostgreSQL with the tools for backups; undefined if there is none. */
export async function findPostgresTools(): Promise<string | undefined> {
  for (const major of MAJORS) {
    const dir = await findSystemPostgres(major);
    if (dir !== undefined && (await isExecutable(join(dir, "pg_basebackup")))) return dir;
  }
  return undefined;
}

function isExecutable(file: string): Promise<boolean> {
  return access(file, constants.X_OK).then(
    () => true,
    () => false,
  );
}

/** A machine on which a page about Postgres is followed. */
export interface PostgresMachine {
  /** Directories of sockets, one for each server that can run at once. */
  readonly sockets: readonly [string, string];
  /** The directory of all data, which belongs to Postgres' user. */
  readonly dataDir: string;
  /** Commands that have to run before a page's: they define its programs and start a primary in `dataDir`/main. */
  readonly preparation: readonly string[];
  /** Commands that start an empty cluster in `dataDir`/standby, on the second socket. */
  readonly newCluster: readonly string[];
  /** Commands that a later shell needs. */
  readonly environment: readonly string[];
}

const PROGRAMS = [
  ...["initdb", "pg_ctl", "pg_basebackup", "pg_verifybackup", "pg_dump", "pg_restore", "psql", "createdb"],
  ...["mkdir", "cp", "touch"],
];

/**
 * Lays out a machine with a primary that listens on a socket only. Where the test runs as root, Postgres'
 * programs and those that write files run as another user, as they would on a server.
 */
export async function layOutPostgresMachine(
  { dir, temporaryDir }: Workplace,
  tools: string,
): Promise<PostgresMachine> {
  const programs = join(dir, "bin");
  const dataDir = join(dir, "data");
  const sockets = [join(temporaryDir, "1"), join(temporaryDir, "2")] as const;
  const user = await chooseServerUser(dataDir);
  await mkdir(programs);
  for (const own of [dataDir, ...sockets]) {
    await mkdir(own);
    if (user !== undefined) await chown(own, user.uid, user.gid);
  }
  const asUser = user && `setpriv --reuid=${user.uid} --regid=${user.gid} --clear-groups `;
  for (const name of PROGRAMS) {
    const script = `#!/bin/sh\nexport PATH=${tools}:/usr/bin:/bin\nexec ${asUser ?? ""}${name} "$@"\n`;
    await writeFile(join(programs, name), script);
    await chmod(join(programs, name), 0o755);
  }
  onTestFinished(async () => {
    for (const cluster of ["main", "standby", "restored"]) {
      const running = await readPidFile(join(dataDir, cluster));
      if (running !== undefined) await shutDown(running);
    }
  });
  const environment = [
    `export PATH=${programs}:$PATH ONCEWARD_API_KEY_PEPPER='${TEST_PEPPER}'`,
    `onceward-server() { ${process.execPath} ${MAIN} "$@"; }`,
  ];
  const start = (cluster: string, socket: string) => [
    `initdb -D ${cluster} -U postgres --auth trust --no-sync --encoding UTF8 --locale C`,
    ...["listen_addresses = ''", `unix_socket_directories = '${socket}'`].map(
      (line) => `printf '%s\\n' "${line}" >> ${cluster}/postgresql.conf`,
    ),
    `pg_ctl start -D ${cluster} -w -l ${cluster}/server.log`,
  ];
  return {
    sockets,
    dataDir,
    environment,
    preparation: [
      ...environment,
      ...start(join(dataDir, "main"), sockets[0]),
      `psql -q -h ${sockets[0]} -U postgres -d postgres -c "create role onceward login createrole"`,
      `createdb -h ${sockets[0]} -U postgres --owner onceward onceward`,
    ],
    newCluster: start(join(dataDir, "standby"), sockets[1]),
  };
}
