import { setTimeout } from "node:timers/promises";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { connectClient } from "../helpers/calls/clients.ts";
import { openDatabase } from "../helpers/database/database.ts";
import { connectAsPerson, fillTable, openGreedily } from "../helpers/database/incidents.ts";
import { useOwnPostgres } from "../helpers/database/own-postgres.ts";
import { createServiceRole } from "../helpers/database/service-role.ts";
import { describeWithPrograms } from "../helpers/deploy/programs.ts";
import { startPrometheus, type TestPrometheus } from "../helpers/deploy/prometheus.ts";
import { createWorkplace, runCommand } from "../helpers/processes/command.ts";
import { settingsFor } from "../helpers/processes/serve.ts";
import { isMountable } from "../helpers/processes/small-disk.ts";
import { startServerProcess } from "../helpers/servers/server-process.ts";

/** Alerts fire after a sixtieth of their time: seconds instead of minutes. */
const SPEED = 60;
const START_TIMEOUT_MS = 120_000;
/** Bounds a hung test; an alert comes within a few scrapes. */
const ALERT_TIMEOUT_MS = 60_000;
const TEST = { timeout: 3 * ALERT_TIMEOUT_MS };

const postgres = useOwnPostgres({ fsync: "off", max_connections: "30" });
const canMount = await isMountable();
if (!canMount) process.stderr.write("Skipped the alerts of a full disk: no disk could be mounted.\n");

describeWithPrograms(["prometheus"], "Prometheus beside a Postgres that refuses writes", () => {
  let prometheus: TestPrometheus;

  beforeAll(async () => {
    prometheus = await startPrometheus({}, SPEED);
  }, START_TIMEOUT_MS);

  afterAll(() => prometheus?.stop());

  /** Starts a replica under load, as a role that is no superuser, and resolves once it is scraped. */
  async function startInstallation(job: string) {
    const url = await postgres.createDatabase();
    const workplace = await createWorkplace();
    const run = (...args: readonly string[]) => runCommand(args, workplace, settingsFor(url));
    await run("migrate");
    const database = openDatabase(url);
    const service = await createServiceRole(database);
    const server = await startServerProcess(service.url);
    const { stdout } = await run("tenant-key", "--tenant", "acme");
    const stop = startLoad(connectClient(server, stdout.trim()));
    onTestFinished(async () => {
      await stop();
      await server.end();
      await database.close();
    });
    await prometheus.setTargets({ [job]: [server] });
    const scraped = () => prometheus.query(`sum(onceward_build_info{job="${job}"})`);
    await expect.poll(scraped, { timeout: ALERT_TIMEOUT_MS, interval: 250 }).toEqual([1]);
    return { url, serviceUrl: service.url, database };
  }

  /** Waits until these alerts of an installation fire. */
  async function untilAlerts(job: string, ...alerts: readonly string[]) {
    const names = async () => {
      const own = (await prometheus.firing()).filter((labels) => labels.job === job);
      return own.map(({ alertname }) => alertname);
    };
    await expect
      .poll(names, { timeout: ALERT_TIMEOUT_MS, interval: 250 })
      .toEqual(expect.arrayContaining([...alerts]));
  }

  test("a synchronous standby that is down, so that commits hang, pages", TEST, async () => {
    const { database } = await startInstallation("onceward-standby");
    onTestFinished(async () => {
      await database.query("alter system reset synchronous_standby_names");
      await database.query("select pg_reload_conf()");
    });
    await database.query("alter system set synchronous_standby_names = 'lost'");
    await database.query("select pg_reload_conf()");
    await untilAlerts("onceward-standby", "OncewardErrorBudgetBurnFast", "OncewardDatabaseUnreachable");
  });

  test("connections that others have exhausted page", TEST, async () => {
    const { url, serviceUrl, database } = await startInstallation("onceward-connections");
    const person = await connectAsPerson(url);
    // Its idle connections would end by themselves, and leave room.
    await database.close();
    const others = openGreedily(serviceUrl);
    onTestFinished(others.stop);
    /** Takes what the replica has; returns whether it had nothing, and others are refused, too. */
    const isExhausted = async () => {
      const before = others.refusals();
      const ended = await person.query(
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'onceward'",
      );
      await setTimeout(100);
      return ended.rowCount === 0 && others.refusals() > before;
    };
    await expect.poll(isExhausted, { timeout: ALERT_TIMEOUT_MS, interval: 20 }).toBe(true);
    await untilAlerts("onceward-connections", "OncewardErrorBudgetBurnFast", "OncewardDatabaseUnreachable");
  });

  test.runIf(canMount)("a disk that is full pages", TEST, async () => {
    const { database } = await startInstallation("onceward-disk");
    await fillTable(database, "records", postgres.dataDir());
    await untilAlerts("onceward-disk", "OncewardErrorBudgetBurnFast");
  });
});

/** Claims one key after the other, as four callers, whatever the answers are. Returns the function that stops it. */
function startLoad(client: ReturnType<typeof connectClient>): () => Promise<void> {
  let stopped = false;
  let keys = 0;
  const callers = [1, 2, 3, 4].map(async () => {
    while (!stopped) {
      const claim = { namespace: "charges", key: `key-${keys++}` };
      await client.claim(claim, { timeoutMs: 2000 }).catch(() => setTimeout(10));
    }
  });
  return async () => {
    stopped = true;
    await Promise.all(callers);
  };
}
