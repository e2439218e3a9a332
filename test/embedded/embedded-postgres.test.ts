import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { chmod, cp, lstat, mkdir, readFile, realpath, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import pg from "pg";
import { expect, onTestFinished, test, vi } from "vitest";
import { findSystemPostgres, packagedBinaries } from "../../server/dev/embedded/binaries.ts";
import {
  type EmbeddedPostgres,
  type EmbeddedPostgresOptions,
  startEmbeddedPostgres,
} from "../../server/dev/embedded/postgres.ts";
import { newDir } from "../support/new-dir.ts";

const isRoot = process.getuid?.() === 0;
const postgres15 = await findSystemPostgres(15);
const settings = { fsync: "off" };

// Creating a cluster takes half a second on an idle machine, and several seconds while other tests run.
vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

test("data is kept from one run to the next", async () => {
  const dataDir = await newDataDir();
  const first = await start({ dataDir });
  expect(first.version).toMatch(/^18\./);
  expect(first.adopted).toBe(false);
  await query(first, "create table kept as select 'héllo' as word");
  await first.stop();

  const second = await start({ dataDir });
  expect(second.adopted).toBe(false);
  expect(await query(second, "select word from kept")).toEqual([{ word: "héllo" }]);
});

test("a stopped server leaves no process, pid file or socket behind", async () => {
  const dataDir = await newDataDir();
  const server = await start({ dataDir });
  const socketDir = socketDirOf(server);
  expect(existsSync(socketDir)).toBe(true);
  await Promise.all([server.stop(), server.stop()]);
  expect(existsSync(join(dataDir, "postmaster.pid"))).toBe(false);
  expect(existsSync(socketDir)).toBe(false);
  await expect(query(server, "select 1")).rejects.toThrow(/ENOENT/);
});

test("the server speaks UTF-8, collates by bytes, and listens on no network address", async () => {
  const server = await start({ dataDir: await newDataDir() });
  const [facts] = await query(
    server,
    `select current_user::text as who, datcollate::text as collation, pg_encoding_to_char(encoding)::text as encoding,
            current_setting('listen_addresses') as addresses, current_setting('timezone') as zone
       from pg_database where datname = current_database()`,
  );
  expect(facts).toEqual({ who: "onceward", collation: "C", encoding: "UTF8", addresses: "", zone: "UTC" });
  expect((await stat(socketDirOf(server))).mode & 0o777).toBe(0o700);
});

test("a second start in the same directory adopts the running server", async () => {
  const dataDir = await newDataDir();
  const other = await startElsewhere(dataDir);
  const ours = await start({ dataDir });
  expect(ours.adopted).toBe(true);
  expect(ours.pid).toBe(other.pid);
  expect(ours.url("postgres")).toBe(other.url);
});

test("the last process stops the server, also an adopted one", async () => {
  const dataDir = await newDataDir();
  const other = await startElsewhere(dataDir);
  const ours = await start({ dataDir });
  await other.stop();
  expect(await query(ours, "select 1 as one")).toEqual([{ one: 1 }]);
  await ours.stop();
  expect(existsSync(join(dataDir, "postmaster.pid"))).toBe(false);
});

test("a server with another connection keeps running", async () => {
  const dataDir = await newDataDir();
  const first = await start({ dataDir });
  const client = new pg.Client(first.url("postgres"));
  await client.connect();
  await first.stop();
  expect((await client.query("select 1 as one")).rows).toEqual([{ one: 1 }]);
  await client.end();

  const second = await start({ dataDir });
  expect(second.adopted).toBe(true);
  await second.stop();
  expect(existsSync(join(dataDir, "postmaster.pid"))).toBe(false);
});

test("concurrent starts share one server", async () => {
  const dataDir = await newDataDir();
  const started = await Promise.all([
    startElsewhere(dataDir),
    startElsewhere(dataDir),
    start({ dataDir }),
    start({ dataDir }),
  ]);
  expect(new Set(started.map(({ pid }) => pid)).size).toBe(1);
  expect(started.filter(({ adopted }) => !adopted)).toHaveLength(1);
});

test("a server whose starter was killed is adopted", async () => {
  const dataDir = await newDataDir();
  const other = await startElsewhere(dataDir);
  await other.kill();
  const ours = await start({ dataDir });
  expect(ours.adopted).toBe(true);
  expect(ours.pid).toBe(other.pid);
  await ours.stop();
  expect(existsSync(join(dataDir, "postmaster.pid"))).toBe(false);
});

test("a killed server is started again with its data", async () => {
  const dataDir = await newDataDir();
  const first = await start({ dataDir });
  await query(first, "create table kept as select 7 as number");
  process.kill(first.pid, "SIGKILL");

  const second = await start({ dataDir });
  expect(second.adopted).toBe(false);
  expect(await query(second, "select number from kept")).toEqual([{ number: 7 }]);
  expect(existsSync(socketDirOf(first))).toBe(false);
  await first.stop();
  expect(await query(second, "select 1 as one")).toEqual([{ one: 1 }]);
});

// No process waits for the server then: in a container without an init it stays as a zombie.
test("a server that was killed together with its starter is started again", async () => {
  const dataDir = await newDataDir();
  const other = await startElsewhere(dataDir);
  await other.kill();
  process.kill(other.pid, "SIGKILL");

  const ours = await start({ dataDir });
  expect(ours.adopted).toBe(false);
  expect(ours.pid).not.toBe(other.pid);
});

test("a pid file whose number now belongs to another process is stale", async () => {
  const dataDir = await newDataDir();
  const first = await start({ dataDir });
  const pidFile = await readFile(join(dataDir, "postmaster.pid"), "utf8");
  await first.stop();
  const unrelated = spawn("sleep", ["60"], { stdio: "ignore" });
  onTestFinished(() => end(unrelated, "SIGKILL"));
  await writeFile(join(dataDir, "postmaster.pid"), pidFile.replace(/^\d+/, String(unrelated.pid)));

  expect((await start({ dataDir })).adopted).toBe(false);
});

test("an incomplete cluster is created again", async () => {
  const dataDir = await newDataDir();
  await mkdir(`${dataDir}.init`);
  await writeFile(join(`${dataDir}.init`, "PG_VERSION"), "18\n");
  const server = await start({ dataDir });
  expect(await query(server, "select 1 as one")).toEqual([{ one: 1 }]);
  expect(existsSync(`${dataDir}.init`)).toBe(false);
});

test("the server has its own process group, so that Ctrl-C does not reach it", async () => {
  const server = await start({ dataDir: await newDataDir() });
  expect(() => process.kill(-server.pid, 0)).not.toThrow();
});

test("a failed start reports the reason", async () => {
  const dataDir = await newDataDir();
  const failing = start({ dataDir, settings: { ...settings, shared_buffers: "a lot" } });
  await expect(failing).rejects.toThrow(/exit code 1[\s\S]*invalid value for parameter "shared_buffers"/);
  const log = await readFile(`${dataDir}.log`, "utf8");
  expect(log).toContain("shared_buffers");
  expect((await start({ dataDir })).adopted).toBe(false);
});

test("a PostgreSQL on a PATH is found by its version, also through a link", async () => {
  const dir = dirname(await newDataDir());
  await expect(findSystemPostgres(99, `${dir}:${packagedBinaries()}`)).resolves.toBeUndefined();
  await expect(findSystemPostgres(18, `${dir}:${packagedBinaries()}`)).resolves.toMatch(/bin$/);
});

test.runIf(postgres15)("a PostgreSQL 15 from the system works the same", async () => {
  const dataDir = await newDataDir();
  const server = await start({ dataDir, binaries: postgres15 ?? "" });
  expect(server.version).toMatch(/^15\./);
  expect((await start({ dataDir })).adopted).toBe(true);
});

test.runIf(isRoot)(
  "if only root can enter the directory, data and binaries are stored elsewhere and kept",
  async () => {
    const dataDir = await newDataDir();
    const shelter = join(dirname(await newDataDir()), "shelter");
    await chmod(dirname(dataDir), 0o700);
    const tree = join(dirname(dataDir), "native");
    await cp(dirname(packagedBinaries()), tree, { recursive: true, verbatimSymlinks: true });
    const options = {
      dataDir,
      binaries: join(tree, "bin"),
      shelters: [join(dirname(dataDir), "no"), shelter],
    };

    const first = await start(options);
    await query(first, "create table kept as select 7 as number");
    await first.stop();
    expect((await lstat(dataDir)).isSymbolicLink()).toBe(true);
    expect((await realpath(dataDir)).startsWith(shelter)).toBe(true);

    const second = await start(options);
    expect(await query(second, "select number from kept")).toEqual([{ number: 7 }]);
    expect((await start(options)).adopted).toBe(true);
  },
);

/** Returns the path of a missing data directory, in a new directory that every user can enter. */
async function newDataDir(): Promise<string> {
  const parent = await newDir();
  await chmod(parent, 0o755);
  return join(await realpath(parent), "postgres");
}

async function start(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const server = await startEmbeddedPostgres({ settings, ...options });
  // Hooks run in reverse order: this one before the directory is removed.
  onTestFinished(() => server.stop());
  return server;
}

/**
 * Runs a process that starts the server, prints its result, and stops the server when its standard input
 * ends.
 */
async function startElsewhere(dataDir: string) {
  const module = new URL("../../server/dev/embedded/postgres.ts", import.meta.url).href;
  const program = `
    import { startEmbeddedPostgres } from ${JSON.stringify(module)};
    const { url, pid, adopted, stop } = await startEmbeddedPostgres(${JSON.stringify({ dataDir, settings })});
    console.log(JSON.stringify({ url: url("postgres"), pid, adopted }));
    process.stdin.resume().once("end", stop);`;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", program], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  onTestFinished(() => end(child));
  const [line] = await once(createInterface(child.stdout), "line", { signal: AbortSignal.timeout(30_000) });
  const told = JSON.parse(String(line)) as { url: string; pid: number; adopted: boolean };
  return { ...told, stop: () => end(child), kill: () => end(child, "SIGKILL") };
}

async function end(child: ChildProcess, signal?: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit", { signal: AbortSignal.timeout(30_000) });
  if (signal === undefined) child.stdin?.end();
  else child.kill(signal);
  await exited;
}

async function query(server: EmbeddedPostgres, sql: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: server.url("postgres"), connectionTimeoutMillis: 10_000 });
  client.on("error", () => {});
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}

function socketDirOf(server: EmbeddedPostgres): string {
  return new URL(server.url("postgres")).searchParams.get("host") ?? "";
}
