import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, inject, onTestFinished, test, vi } from "vitest";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../../server/dev/embedded/postgres.ts";
import { migrate } from "../../server/src/database/migrate.ts";
import { connectClient } from "../support/calls/clients.ts";
import { connectCrowd } from "../support/calls/crowd.ts";
import { expectReplays, startLoad } from "../support/calls/steady-load.ts";
import { openDatabase } from "../support/database/database.ts";
import { proxyDatabase, socketOf } from "../support/database/database-proxy.ts";
import { createTenant } from "../support/servers/tenants.ts";
import { startProcessOfTest } from "../support/servers/use-server.ts";

const CALLERS = 8;
const CRASHES = 2;

/** Starts a Postgres with durable settings, on a directory that survives its crashes. */
async function newDurablePostgres(): Promise<() => Promise<EmbeddedPostgres>> {
  const dir = await mkdtemp(join(tmpdir(), "onceward-crash-"));
  const all: EmbeddedPostgres[] = [];
  // Hooks run in reverse order: this one after those that close connections, which would keep Postgres
  // running.
  onTestFinished(async () => {
    for (const started of all) await started.stop();
    await rm(dir, { recursive: true, force: true });
  });
  // If the tests run as root, Postgres runs as another user, who must be able to enter.
  await chmod(dir, 0o755);
  const binaries = inject("postgresBinaries");
  return async () => {
    const started = await startEmbeddedPostgres({
      dataDir: join(dir, "data"),
      settings: { fsync: "on", synchronous_commit: "on", full_page_writes: "on" },
      ...(binaries && { binaries }),
    });
    all.push(started);
    return started;
  };
}

/** Resolves once the postmaster has ended; its children then end automatically. */
async function killPostmaster(pid: number): Promise<void> {
  process.kill(pid, "SIGKILL");
  const isGone = () => {
    try {
      return !process.kill(pid, 0);
    } catch {
      return true;
    }
  };
  await vi.waitUntil(isGone, { timeout: 30_000, interval: 10 });
}

test("nothing acknowledged is lost when Postgres is killed repeatedly under load", async () => {
  const start = await newDurablePostgres();
  let postgres = await start();
  await migrate(postgres.url("postgres"), () => {});
  const { proxy, url } = await proxyDatabase(postgres.url("postgres"));
  const database = openDatabase(url);
  const { apiKey } = await createTenant(database);
  await database.close();
  const server = await startProcessOfTest(url, { ONCEWARD_CACHE_MIB: "0" });

  const load = startLoad(await connectCrowd([server], apiKey, CALLERS), "charges");
  for (let crash = 0; crash < CRASHES; crash++) {
    await load.more(50);
    await killPostmaster(postgres.pid);
    postgres = await start();
    proxy.setTarget(socketOf(postgres.url("postgres")));
    proxy.cut();
  }
  await load.more(50);
  await load.stop();

  expect(server.alive).toBe(true);
  await expectReplays(connectClient(server, apiKey), "charges", load);
}, 120_000);
