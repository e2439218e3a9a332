import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { chmod, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import pg from "pg";
import { isAlive } from "../../../server/dev/embedded/pid-file.ts";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../../../server/dev/embedded/postgres.ts";
import { waitUntil } from "../../../server/dev/embedded/wait.ts";
import type { OpenDatabase } from "./database.ts";
import { startStandby } from "./standby.ts";

const run = promisify(execFile);

/** A run's own Postgres, which can be killed, frozen and failed over. */
export interface ChaosPostgres extends AsyncDisposable {
  /** The URL of the running server, without a proxy. */
  readonly url: string;
  readonly version: string;
  /** Runs a query without a proxy; rejects while the server is unreachable. */
  readonly query: OpenDatabase["query"];
  /** Opens a connection for the caller, without a proxy. */
  connect(): Promise<pg.Client>;
  /** Sends a signal to all of its processes. */
  signal(name: NodeJS.Signals): void;
  /** Ends the postmaster and its children at once. */
  kill(): Promise<void>;
  /** Shuts it down in order, as `pg_ctl stop --mode fast` does. */
  shutDown(): Promise<void>;
  /** Starts it on the same data, unless it runs; resolves once it accepts connections. */
  restart(): Promise<void>;
  /** Adds a synchronous standby, unless there is one: it has everything that is acknowledged afterwards. */
  addStandby(): Promise<void>;
  /** Kills the primary, promotes the standby, and removes the killed server's data. */
  failOver(): Promise<void>;
  /** Copies its files while all of its processes are stopped: everything that was acknowledged before, and nothing later. */
  copy(): Promise<DatabaseCopy>;
  /**
   * Kills it, and starts it again on a copy's files, which are used up: as a restore of all that was archived, on another
   * timeline.
   */
  restore(copy: DatabaseCopy): Promise<void>;
}

/** A copy of a database's files. */
export interface DatabaseCopy {
  readonly dir: string;
}

const CONNECT_TIMEOUT_MS = 3000;
const DEATH_TIMEOUT_MS = 10_000;
const RECOVERY_TIMEOUT_MS = 60_000;

/**
 * A commit is acknowledged after it was written to the operating system. That survives every signal, so
 * nothing is synced to the disk. The background writer of the log is slow, because a fast one would hide a
 * commit that was acknowledged too early.
 */
const SETTINGS = {
  fsync: "off",
  wal_writer_delay: "10s",
  wal_writer_flush_after: "1GB",
  max_connections: "60",
  wal_keep_size: "512MB",
};

/** How a Postgres differs from the packaged one with the usual settings. */
export interface ChaosPostgresOptions {
  /** The `bin` directory of another Postgres. */
  readonly binaries?: string;
  /** Settings besides the usual ones, or in their place. */
  readonly settings?: Readonly<Record<string, string>>;
}

/**
 * Starts a Postgres in a new directory below `parent`; `onMoved` is called with its URL whenever that
 * changes, and is waited for.
 */
export async function startChaosPostgres(
  parent: string,
  onMoved: (url: string) => void | Promise<void>,
  { binaries, settings: ownSettings }: ChaosPostgresOptions = {},
): Promise<ChaosPostgres> {
  const settings = { ...SETTINGS, ...ownSettings };
  const start = (dir: string, more: Readonly<Record<string, string>> = {}) =>
    startEmbeddedPostgres({
      dataDir: dir,
      settings: { ...settings, ...more },
      ...(binaries !== undefined && { binaries }),
    });
  const dir = await mkdtemp(join(parent, "ow-chaos-"));
  // As root, Postgres runs as another user, which must be able to enter.
  await chmod(dir, 0o755);
  let clusters = 0;
  const newDataDir = () => join(dir, `data-${++clusters}`);
  let dataDir = newDataDir();
  let running = await start(dataDir);
  let control = open(running);
  let standby: { readonly dataDir: string; readonly running: EmbeddedPostgres } | undefined;

  async function moveTo(next: EmbeddedPostgres): Promise<void> {
    void control.end();
    running = next;
    control = open(running);
    await onMoved(running.url("postgres"));
  }

  async function untilDead(): Promise<void> {
    const { pid } = running;
    if (!(await waitUntil(() => !isAlive(pid), DEATH_TIMEOUT_MS))) throw new Error("Postgres survived");
  }

  async function kill(): Promise<void> {
    for (const pid of familyOf(running.pid)) signalIfAlive(pid, "SIGKILL");
    await untilDead();
  }

  return {
    get url() {
      return running.url("postgres");
    },
    version: running.version,
    query: async <Row extends pg.QueryResultRow>(text: string, values: readonly unknown[] = []) =>
      (await control.query<Row>(text, [...values])).rows,
    async connect() {
      const client = new pg.Client({
        connectionString: running.url("postgres"),
        connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      });
      client.on("error", () => {});
      await client.connect();
      return client;
    },
    signal(name) {
      for (const pid of familyOf(running.pid)) signalIfAlive(pid, name);
    },
    kill,
    async shutDown() {
      signalIfAlive(running.pid, "SIGINT");
      await untilDead();
    },
    async restart() {
      await moveTo(await start(dataDir));
    },
    async addStandby() {
      if (standby !== undefined) return;
      const copyDir = newDataDir();
      standby = {
        dataDir: copyDir,
        running: await startStandby({
          control,
          primary: running,
          dataDir,
          copyDir,
          settings,
          ...(binaries !== undefined && { binaries }),
          standing: "synchronous",
        }),
      };
    },
    async failOver() {
      if (standby === undefined) throw new Error("there is no standby");
      const next = standby;
      await kill();
      const promoting = open(next.running);
      await promoting.query("select pg_promote(true, 30)");
      await promoting.end();
      const lost = dataDir;
      ({ dataDir } = next);
      standby = undefined;
      await moveTo(next.running);
      await removeData(lost);
    },
    async copy() {
      const files = await realpath(dataDir);
      const copyDir = newDataDir();
      const family = familyOf(running.pid);
      for (const pid of family) signalIfAlive(pid, "SIGSTOP");
      try {
        await run("cp", ["-a", files, copyDir]);
      } finally {
        for (const pid of family) signalIfAlive(pid, "SIGCONT");
      }
      return { dir: copyDir };
    },
    async restore(copy) {
      await kill();
      const lost = dataDir;
      dataDir = copy.dir;
      await writeFile(join(dataDir, "recovery.signal"), "");
      const restored = await start(dataDir, { restore_command: "/bin/false" });
      await untilWritable(restored);
      await moveTo(restored);
      await removeData(lost);
    },
    async [Symbol.asyncDispose]() {
      for (const pid of familyOf(running.pid)) signalIfAlive(pid, "SIGCONT");
      await control.end();
      // The standby first: a primary waits for it when it shuts down.
      if (standby !== undefined) await end(standby.running);
      await end(running);
      for (let cluster = 1; cluster <= clusters; cluster++) await removeData(join(dir, `data-${cluster}`));
      await rm(dir, { recursive: true, force: true });
    },
  };
}

/**
 * Stops a server and ends its backends: those of killed clients would work until they answer.
 */
async function end(server: EmbeddedPostgres): Promise<void> {
  const client = new pg.Client({
    connectionString: server.url("postgres"),
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: CONNECT_TIMEOUT_MS,
  });
  client.on("error", () => {});
  // A server that is unreachable or refuses connections is killed below.
  await client
    .connect()
    .then(() => client.query(END_OTHERS))
    .catch(() => {});
  await client.end().catch(() => {});
  await server.stop();
  for (const pid of familyOf(server.pid)) signalIfAlive(pid, "SIGKILL");
  await waitUntil(() => !isAlive(server.pid), DEATH_TIMEOUT_MS);
}

/** Ends all clients except this one and the connections that mark the embedded server as used. */
const END_OTHERS = `
select pg_terminate_backend(pid)
  from pg_stat_activity
 where backend_type = 'client backend'
   and pid <> pg_backend_pid()
   and application_name <> 'onceward embedded presence'`;

/** Waits until a restored server has replayed its log. */
async function untilWritable(server: EmbeddedPostgres): Promise<void> {
  const client = open(server);
  const isWritable = async () => {
    const { rows } = await client.query<{ recovers: boolean }>("select pg_is_in_recovery() as recovers");
    return rows[0]?.recovers === false;
  };
  try {
    if (!(await waitUntil(isWritable, RECOVERY_TIMEOUT_MS)))
      throw new Error("the restored Postgres still recovers");
  } finally {
    await client.end();
  }
}

/** Removes a data directory if it exists; the path may be a link. */
async function removeData(dataDir: string): Promise<void> {
  const path = await realpath(dataDir).catch(() => undefined);
  if (path !== undefined) await rm(path, { recursive: true, force: true });
}

function open(postgres: EmbeddedPostgres): pg.Pool {
  const pool = new pg.Pool({
    connectionString: postgres.url("postgres"),
    max: 3,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    application_name: "chaos",
  });
  pool.on("error", () => {});
  return pool;
}

/** Returns a process and its children. */
export function familyOf(pid: number): number[] {
  const children = readdirSync("/proc").filter((entry) => {
    try {
      return /^\d+$/.test(entry) && parentOf(entry) === pid;
    } catch {
      // The process has just ended.
      return false;
    }
  });
  return [pid, ...children.map(Number)];
}

/** Reads the fourth field of /proc/<pid>/stat; the second, a name in brackets, may contain spaces. */
function parentOf(pid: string): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
}

/** Sends a signal to a process, unless it has ended. */
export function signalIfAlive(pid: number, name: NodeJS.Signals): void {
  if (isAlive(pid)) process.kill(pid, name);
}
