import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { connectClient } from "../support/calls/clients.ts";
import { openDatabase } from "../support/database/database.ts";
import { connectAsPerson, fillTable, openGreedily } from "../support/database/incidents.ts";
import { useOwnPostgres } from "../support/database/own-postgres.ts";
import { createServiceRole } from "../support/database/service-role.ts";
import { describeWithPrograms } from "../support/deploy/programs.ts";
import {
  ALERT_TIMEOUT_MS,
  type Rehearsal,
  startClaims,
  startRehearsal,
} from "../support/deploy/rehearsal.ts";
import { createWorkplace, runCommand } from "../support/processes/command.ts";
import { settingsFor } from "../support/processes/serve.ts";
import { isMountable } from "../support/processes/small-disk.ts";
import { startServerProcess } from "../support/servers/server-process.ts";

/** Alerts fire after a sixtieth of their time: seconds instead of minutes. */
const SPEED = 60;
const START_TIMEOUT_MS = 120_000;
const TEST = { timeout: 3 * ALERT_TIMEOUT_MS };

const postgres = useOwnPostgres({ fsync: "off", max_connections: "30" });
const canMount = await isMountable();
if (!canMount) process.stderr.write("Skipped the alerts of a full disk: no disk could be mounted.\n");

describeWithPrograms(["prometheus"], "Prometheus beside a Postgres that refuses writes", () => {
  let rehearsal: Rehearsal;
  /** With the alerts' own times. */
  let slow: Rehearsal;

  beforeAll(async () => {
    rehearsal = await startRehearsal(SPEED);
    slow = await startRehearsal(1);
  }, START_TIMEOUT_MS);

  afterAll(async () => {
    await rehearsal?.stop();
    await slow?.stop();
  });

  /** Starts a replica under load, as a role that is not a superuser, and resolves once it is scraped. */
  async function startInstallation(job: string, watched = rehearsal) {
    const url = await postgres.createDatabase();
    const workplace = await createWorkplace();
    const run = (...args: readonly string[]) => runCommand(args, workplace, settingsFor(url));
    await run("migrate");
    const database = openDatabase(url);
    const service = await createServiceRole(database);
    const server = await startServerProcess(service.url);
    const { stdout } = await run("tenant-key", "--tenant", "acme");
    const stop = startClaims(connectClient(server, stdout.trim()));
    onTestFinished(async () => {
      await stop();
      await server.end();
      await database.close();
    });
    await watched.scrape(job, [server]);
    return { url, serviceUrl: service.url, database };
  }

  test("a synchronous standby that is down, so that commits hang, pages", TEST, async () => {
    const { database } = await startInstallation("onceward-standby", slow);
    onTestFinished(async () => {
      await database.query("alter system reset synchronous_standby_names");
      await database.query("select pg_reload_conf()");
    });
    await database.query("alter system set synchronous_standby_names = 'lost'");
    await database.query("select pg_reload_conf()");
    await slow.untilAlerts("onceward-standby", "OncewardErrorBudgetBurnFast", "OncewardDatabaseUnreachable");
  });

  test("connections that others have exhausted page", TEST, async () => {
    const { url, serviceUrl, database } = await startInstallation("onceward-connections");
    const person = await connectAsPerson(url);
    // Its idle connections would end unaided, and leave room.
    await database.close();
    const others = openGreedily(serviceUrl);
    onTestFinished(others.stop);
    /** Takes what the replica has; returns how many connections these were. */
    const take = async () =>
      (
        await person.query(
          "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'onceward'",
        )
      ).rowCount;
    let took = await take();
    let before = others.refusals();
    /**
     * Whether the replica had no connection at two checks, between which an attempt of others began and was refused: then others have
     * all, and keep them. One refusal may be of an attempt that began before the first check.
     */
    const isExhausted = async () => {
      if (others.refusals() < before + 2) return false;
      const tookBefore = took;
      took = await take();
      before = others.refusals();
      return tookBefore === 0 && took === 0;
    };
    await expect.poll(isExhausted, { timeout: ALERT_TIMEOUT_MS, interval: 20 }).toBe(true);
    await rehearsal.untilAlerts(
      "onceward-connections",
      "OncewardErrorBudgetBurnFast",
      "OncewardDatabaseUnreachable",
    );
  });

  test.runIf(canMount)("a disk that is full pages", TEST, async () => {
    const { database } = await startInstallation("onceward-disk");
    await fillTable(database, "records", postgres.dataDir());
    await rehearsal.untilAlerts("onceward-disk", "OncewardErrorBudgetBurnFast");
  });
});
