import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { durationFromMs, type Timestamp, timestampNow } from "@bufbuild/protobuf/wkt";
import { ConnectError, createClient } from "@connectrpc/connect";
import { describe, expect, onTestFinished, test } from "vitest";
import { IdempotencyService } from "../../clients/typescript/src/gen/onceward/v1/idempotency_pb.ts";
import { readPidFile } from "../../server/dev/embedded/pid-file.ts";
import { grpcTransport } from "../lab/chaos/grpc-transport.ts";
import { bearing } from "../lab/chaos/load/calls.ts";
import { startReplica } from "../lab/chaos/replica.ts";
import { checkHistory } from "../lab/history/check.ts";
import { openJournal, readJournals } from "../lab/history/journal.ts";
import { nowMs, type RecordName, type Restore } from "../lab/history/operation.ts";
import { recordingInterceptor } from "../lab/history/recorder.ts";
import { describeViolation } from "../lab/history/timeline.ts";
import { connectClient, type IdempotencyClient } from "../support/calls/clients.ts";
import { describeError, errorOf } from "../support/calls/errors.ts";
import { complete, grant, ORDER, success } from "../support/calls/verbs.ts";
import { familyOf, signalIfAlive } from "../support/database/chaos-postgres.ts";
import { openDatabase } from "../support/database/database.ts";
import {
  findPostgresTools,
  layOutPostgresMachine,
  type PostgresMachine,
} from "../support/database/postgres-tools.ts";
import { socketOf } from "../support/network/sockets.ts";
import { startTcpProxy, type TcpProxy } from "../support/network/tcp-proxy.ts";
import { createWorkplace, type Workplace } from "../support/processes/command.ts";
import { followSteps, missingLine, type Step, stepsOf } from "../support/processes/follow-readme.ts";
import { startTestServer } from "../support/servers/server.ts";
import { createTenant, setNamespacePolicy } from "../support/servers/tenants.ts";

const PAGE = "deploy/recovery.md";
const REGIONS = "deploy/regions.md";
const tools = await findPostgresTools();
if (tools === undefined) {
  process.stderr.write("Rehearsals of deploy/recovery.md are skipped: install postgresql-15 to run them.\n");
}

const SERVICE_ROLE_OF_PAGE = "deploy/postgres/service-role.sql";
const SERVICE_ROLE = fileURLToPath(new URL(`../../${SERVICE_ROLE_OF_PAGE}`, import.meta.url));
const MARK_LOSS = "deploy/postgres/mark-loss.sql";
/** The role that it makes. */
const SERVICE = "onceward_service";

/** The sections that were followed. */
const rehearsed = new Set<string>();

/** Follows the page section by section, on a machine with one primary. */
async function startRehearsal(binDir: string) {
  const workplace = await createWorkplace();
  const machine = await layOutPostgresMachine(workplace, binDir);
  await follow(
    workplace,
    machine.preparation.map((command) => ({ command, printed: [] })),
  );
  const url = (socket: string, role = "postgres") =>
    `postgresql://${role}@localhost/onceward?host=${encodeURIComponent(socket)}`;
  const owner = url(machine.sockets[0], "onceward");
  const shell = (steps: readonly Step[]) =>
    follow(workplace, [...machine.environment.map((command) => ({ command, printed: [] })), ...steps]);
  const layOutRoles = [
    `DATABASE_URL='${owner}' onceward-server migrate`,
    `psql -q --set ON_ERROR_STOP=1 --set password=secret --file ${SERVICE_ROLE} '${owner}'`,
  ];
  await shell(layOutRoles.map((command) => ({ command, printed: [] })));
  return {
    machine,
    url,
    /** Follows sections of the page in a shell of their own, after the variables at its top. */
    async sections(names: readonly string[], changes: Changes = {}, page = PAGE) {
      const steps = await Promise.all([stepsOf(PAGE, ""), ...names.map((name) => stepsOf(page, name))]);
      for (const name of names) rehearsed.add(name);
      await shell(steps.flat().flatMap((step) => changed(step, machine, changes)));
    },
  };
}

interface Changes {
  /** Texts of the page, and their replacements. */
  readonly texts?: Readonly<Record<string, string>>;
  /** Commands to type before those that start with a text. */
  readonly before?: Readonly<Record<string, readonly string[]>>;
}

function changed(
  step: Step,
  { sockets, dataDir }: PostgresMachine,
  { texts, before }: Changes,
): readonly Step[] {
  const replaced = replaceAll(step.command, {
    "PGHOST=db1": `PGHOST=${sockets[0]}`,
    "PGHOST=db2": `PGHOST=${sockets[1]}`,
    "/var/lib/postgresql/18": dataDir,
    "/mnt/backups": dataDir,
    "'PEPPER'": '"$ONCEWARD_API_KEY_PEPPER"',
    [SERVICE_ROLE_OF_PAGE]: SERVICE_ROLE,
    [MARK_LOSS]: fileURLToPath(new URL(`../../${MARK_LOSS}`, import.meta.url)),
    ...texts,
  });
  const extra = Object.entries(before ?? {}).filter(([start]) => step.command.startsWith(start));
  return [
    ...extra.flatMap(([, commands]) => commands.map((command) => ({ command, printed: [] }))),
    { printed: step.printed.map((line) => replaceAll(line, texts)), command: replaced },
  ];
}

function replaceAll(text: string, texts: Changes["texts"] = {}): string {
  return Object.entries(texts).reduce((replaced, [from, to]) => replaced.replaceAll(from, to), text);
}

/** Types commands, and checks that each succeeds and prints what the page shows. */
async function follow(workplace: Workplace, steps: readonly Step[]): Promise<void> {
  const followed = await followSteps(
    workplace,
    steps.map(({ command }) => command),
  );
  for (const [index, { command, printed }] of steps.entries()) {
    const { exit, output } = followed[index] ?? { exit: undefined, output: "" };
    expect({ command, exit, output }).toEqual({ command, exit: 0, output });
    expect({ command, output, missing: missingLine(printed, output) }).toMatchObject({ missing: undefined });
  }
}

async function serve(url: string) {
  const database = openDatabase(url);
  onTestFinished(() => database.close());
  const server = await startTestServer(url);
  onTestFinished(() => server.stop());
  return { database, server };
}

/** A namespace that refuses late keys. */
const LATE = "late";

const key = (name: string) => ({ ...ORDER, key: name });

describe.runIf(tools !== undefined)("deploy/recovery.md", () => {
  test("a dump is restored on a new cluster: results replay, older keys are refused or new", async () => {
    const { sections, url, machine } = await startRehearsal(tools ?? "");
    const { database, server } = await serve(url(machine.sockets[0], SERVICE));
    const tenant = await createTenant(database);
    const { apiKey } = tenant;
    await setNamespacePolicy(database, tenant, LATE, { late_keys: "REQUIRE_TIME" });
    const losing = connectClient(server, apiKey);
    const { fencingToken } = await complete(losing, success("paid"));
    const unclaimed = { namespace: LATE, key: "queued", keyCreatedAt: timestampNow() };
    await grant(losing, { ...key("unfinished"), lease: durationFromMs(1000), marksBegin: true });
    const released = await grant(losing, { ...key("released"), lease: durationFromMs(1000) });
    await losing.release({ ...key("released"), fencingToken: released.fencingToken });
    await database.close();
    await server.stop();
    const stop = `pg_ctl stop -D ${machine.dataDir}/main -m immediate`;
    await sections(["Dump and restore a dump"], {
      before: { "export PGHOST=db2": [stop, ...machine.newCluster] },
    });
    const copy = await serve(url(machine.sockets[1], SERVICE));
    const client = connectClient(copy.server, apiKey);
    expect((await client.claim(ORDER)).outcome.case).toBe("completed");
    expect((await grant(client, key("another"))).fencingToken).toBeGreaterThan(fencingToken);
    // Either may have begun and been completed since.
    for (const name of ["unfinished", "released"])
      await expect
        .poll(async () => (await client.claim(key(name))).outcome.case, { timeout: 10_000 })
        .toBe("ambiguous");
    expect(await errorOf(client.claim(unclaimed))).toMatchObject({
      reason: "KEY_TOO_OLD",
      message: expect.stringContaining("older than a loss of records"),
    });
  });

  test("a primary is lost, and its archive restored to a point in time", async () => {
    const { sections, url, machine } = await startRehearsal(tools ?? "");
    const primary = url(machine.sockets[0]);
    const first = await serve(primary);
    const tenant = await createTenant(first.database);
    const { apiKey } = tenant;
    await setNamespacePolicy(first.database, tenant, LATE, { late_keys: "REQUIRE_TIME" });
    await first.server.stop();
    await first.database.close();
    await sections(["Archive the log", "Take a base backup"]);

    const { database, server } = await serve(primary);
    await complete(connectClient(server, apiKey), success("after the base backup"));
    await server.stop();
    const [now] = await database.query<{ until: string }>("select clock_timestamp()::text as until");
    const later = await serve(primary);
    const losing = connectClient(later.server, apiKey);
    const lost = await grant(losing, key("later"));
    await losing.complete({ ...key("later"), fencingToken: lost.fencingToken, result: success("lost") });
    const claimed = { namespace: LATE, key: "later", keyCreatedAt: timestampNow() };
    await grant(losing, claimed);
    await later.server.stop();
    const [segment] = await database.query<{ name: string }>(
      "select pg_walfile_name(pg_switch_wal()) as name",
    );
    // The file is there before all of it is copied.
    const archiver = () =>
      database.query("select from pg_stat_archiver where last_archived_wal >= $1", [segment?.name]);
    await expect.poll(archiver).toHaveLength(1);
    await database.close();
    await later.database.close();

    await sections(["Restore to a point in time"], {
      texts: { "2026-01-31 09:00:00+00": now?.until ?? "" },
      before: { "cp -a": [`pg_ctl stop -D ${machine.dataDir}/main -m immediate`] },
    });
    const restored = await serve(primary);
    const client = connectClient(restored.server, apiKey);
    const replayed = await client.claim(ORDER);
    expect(replayed.outcome.case).toBe("completed");
    // Completed after the point in time: granted again, with a token above the lost one.
    expect((await grant(client, key("later"))).fencingToken).toBeGreaterThan(lost.fencingToken);
    expect(await errorOf(client.claim(claimed))).toMatchObject({ reason: "KEY_TOO_OLD" });
    await grant(client, { ...claimed, keyCreatedAt: timestampNow() });
  });

  test("a lost primary's synchronous standby takes over with everything acknowledged", async () => {
    const { sections, url, machine } = await startRehearsal(tools ?? "");
    const [socket, standbySocket] = machine.sockets;
    // Both run on one machine in the test.
    const own = `printf '%s\\n' "unix_socket_directories = '${standbySocket}'" >> $standby/postgresql.auto.conf`;
    await sections(["Add a standby"], { before: { "pg_ctl start -D $standby": [own] } });
    const { database, server } = await serve(url(socket));
    const tenant = await createTenant(database);
    const { apiKey } = tenant;
    await setNamespacePolicy(database, tenant, LATE, { late_keys: "REQUIRE_TIME" });
    const { fencingToken } = await complete(connectClient(server, apiKey), success("acknowledged"));
    const unclaimed = { namespace: LATE, key: "queued", keyCreatedAt: timestampNow() };
    await database.close();
    // The replica keeps running, and loses its database.
    await sections(["Failover"]);
    await server.stop();
    const promoted = await serve(url(standbySocket));
    const client = connectClient(promoted.server, apiKey);
    expect((await client.claim(ORDER)).outcome.case).toBe("completed");
    expect((await grant(client, key("new"))).fencingToken).toBeGreaterThan(fencingToken);
    // As an asynchronous standby may have lost it: the page's mark is there.
    expect(await errorOf(client.claim(unclaimed))).toMatchObject({ reason: "KEY_TOO_OLD" });
  });

  test("every section with commands was rehearsed", async () => {
    const page = await readFile(new URL(`../../${PAGE}`, import.meta.url), "utf8");
    const [, ...parts] = page.split(/^## /m);
    const withCommands = parts.filter((part) => part.includes("```sh")).map((part) => part.split("\n")[0]);
    expect([...rehearsed].sort()).toEqual(withCommands.sort());
  });
});

const PLAIN = "plain";
const LEASE_MS = 2000;
const DAY_MS = 86_400_000;
const WORKERS = 24;
/** The times of commits, and the two clocks, differ a little. */
const TOLERANCE_MS = 100;
const UNFINISHED = `
select from records, installation
 where state = 1 and claimed_at < records_lost_at and lease_expires_at > clock_timestamp()`;
/** Of each part of the load, how many completions. */
const ENOUGH = 200;

interface Key extends Omit<RecordName, "tenant"> {
  readonly keyCreatedAt: Timestamp;
}

/** Two replicas as processes, and callers that claim and complete new keys in two namespaces; every call is recorded. */
async function startLoad(databaseUrl: string, apiKey: string, dir: string) {
  const accidents: string[] = [];
  const replicas = await Promise.all(
    ["replica-1", "replica-2"].map((name) =>
      startReplica({ name, databaseUrl, redisSocket: undefined, onAccident: (what) => accidents.push(what) }),
    ),
  );
  for (const replica of replicas) onTestFinished(() => replica[Symbol.asyncDispose]());
  const journalPath = join(dir, "journal");
  const journal = openJournal(journalPath);
  const clients = replicas.map(({ name, inbound }) => {
    const recorded = recordingInterceptor({ journal, client: `of ${name}`, replica: name, tenant: "acme" });
    return createClient(IdempotencyService, grpcTransport(inbound.port, [bearing(apiKey), recorded]));
  });
  /** When each completion was acknowledged last. */
  const acknowledged = new Map<Key, number>();
  let isStopped = false;
  /** Returns what a claim met, and completes what it is granted; undefined if the outcome is unknown. */
  async function claim(key: Key): Promise<string | undefined> {
    const client = clients[Math.floor(Math.random() * clients.length)] as IdempotencyClient;
    try {
      const request = { ...key, claimId: randomUUID(), lease: durationFromMs(LEASE_MS) };
      const { outcome } = await client.claim(request, { timeoutMs: 5000 });
      if (outcome.case !== "claimed") return outcome.case;
      const { fencingToken } = outcome.value;
      await client.complete({ ...key, fencingToken, result: success("done") }, { timeoutMs: 5000 });
      acknowledged.set(key, nowMs());
      return outcome.case;
    } catch (error) {
      if (!(error instanceof ConnectError)) throw error;
      const { reason } = describeError(error);
      if (reason === "KEY_TOO_OLD") return reason;
      await pause(100);
      return undefined;
    }
  }
  const workers = Array.from({ length: WORKERS }, async (_, worker) => {
    for (let count = 0; !isStopped; count++) {
      const keyCreatedAt = timestampNow();
      const keys = [PLAIN, LATE].map((namespace) => ({ namespace, key: `${worker}-${count}`, keyCreatedAt }));
      await Promise.all([...keys.map(claim), pause(20)]);
    }
  });
  return {
    replicas,
    /** Starts the replicas at another primary. */
    async moveTo(url: string) {
      for (const { toPostgres } of replicas) toPostgres.setTarget(socketOf(url));
      await Promise.all(replicas.map((replica) => replica.restart()));
    },
    async untilAcknowledged(more: number) {
      const enough = acknowledged.size + more;
      await expect.poll(() => acknowledged.size, { timeout: 60_000 }).toBeGreaterThan(enough);
    },
    /** Claims again what was acknowledged until then, and counts by namespace what became of it. */
    async repeat(untilMs: number) {
      const keys = [...acknowledged].flatMap(([key, atMs]) => (atMs <= untilMs ? [key] : [])).values();
      const met: Record<string, number> = {};
      const repeatNext = async () => {
        for (const key of keys) {
          let what: string | undefined;
          do what = await claim(key);
          while (what === undefined);
          const of = `${key.namespace} ${what}`;
          met[of] = (met[of] ?? 0) + 1;
        }
      };
      await Promise.all(Array.from({ length: WORKERS }, repeatNext));
      return met;
    },
    /** Ends the load, and returns what is wrong with its history. */
    async stop(restores: readonly Restore[]) {
      isStopped = true;
      await Promise.all(workers);
      journal.close();
      const retention = { keyRetentionMs: DAY_MS, resultRetentionMs: DAY_MS, failureRetentionMs: DAY_MS };
      const own = { tenant: "acme", ...retention, defaultLeaseMs: LEASE_MS, onLeaseExpiry: "HOLD" } as const;
      const policies = [PLAIN, LATE].map((namespace) => {
        return { ...own, namespace, refusesLateKeys: namespace === LATE };
      });
      const operations = readJournals([journalPath]);
      const { violations, timeouts } = checkHistory({ operations, policies, restores });
      return [...accidents, ...timeouts, ...violations.map(describeViolation)];
    },
  };
}

/** How far a standby has received the log. */
async function received(url: string): Promise<string> {
  const standby = openDatabase(url);
  const [row] = await standby.query("select lpad(pg_last_wal_receive_lsn()::text, 17) as lsn");
  await standby.close();
  return String(row?.lsn);
}

describe.runIf(tools !== undefined)(REGIONS, () => {
  test.each([
    ["an asynchronous standby", true],
    ["ANY 1 of two standbys", false],
  ])("a region is lost under load, with %s, and becomes the home again", async (standing, isLossy) => {
    const { sections, url, machine } = await startRehearsal(tools ?? "");
    const [home, other] = machine.sockets;
    const cluster = (name: string) => join(machine.dataDir, name);
    const [main, standby, second] = [cluster("main"), cluster("standby"), cluster("restored")];
    const control = openDatabase(url(home));
    onTestFinished(() => control.close());
    const tenant = await createTenant(control, { on_lease_expiry: "HOLD" });
    await setNamespacePolicy(control, tenant, LATE, { late_keys: "REQUIRE_TIME" });
    const listenAt = (socket: string, dir: string) =>
      `printf '%s\n' "unix_socket_directories = '${socket}'" >> ${dir}/postgresql.auto.conf`;

    // Each standby is 150 ms away.
    const toHome = () => startTcpProxy(socketOf(url(home)));
    const ways = [await toHome(), await toHome()] as const;
    for (const way of ways) way.setMode("delay");
    const by = ({ port }: TcpProxy) => ({ "host=$PGHOST": `host=127.0.0.1 port=${port}` });
    await sections(["Add a standby"], {
      texts: by(ways[0]),
      before: { "pg_ctl start": [listenAt(other, standby)] },
    });
    if (!isLossy)
      await sections(["Add a standby"], {
        texts: { ...by(ways[1]), standby1: "standby2", $standby: second },
        before: { "pg_ctl start": [`mkdir ${second}/socket`, listenAt(`${second}/socket`, second)] },
      });
    const names = isLossy ? "" : "ANY 1 (standby1, standby2)";
    await control.query(`alter system set synchronous_standby_names = '${names}'`);
    await control.query("select pg_reload_conf()");
    const states = isLossy ? ["async"] : ["quorum", "quorum"];
    await expect
      .poll(() => control.query("select sync_state as state from pg_stat_replication"))
      .toEqual(states.map((state) => ({ state })));
    const load = await startLoad(url(home, SERVICE), tenant.apiKey, machine.dataDir);
    await load.untilAcknowledged(ENOUGH);
    // The line to it, or to one of the two, breaks first.
    ways[isLossy ? 0 : 1].setMode("swallow");
    await load.untilAcknowledged(ENOUGH);

    // The whole region is lost.
    const postmaster = await readPidFile(main);
    for (const pid of familyOf(postmaster?.pid ?? 0)) signalIfAlive(pid, "SIGKILL");
    await Promise.all([...ways.map((way) => way.close()), ...load.replicas.map((replica) => replica.kill())]);
    const killedAtMs = nowMs();
    if (!isLossy) expect((await received(url(other))) > (await received(url(`${second}/socket`)))).toBe(true);
    await sections(["Failover"], {
      texts: { "pg_ctl stop": ":", ...(!isLossy && { "psql -q -d onceward --file": ":" }) },
    });
    await load.moveTo(url(other));
    const movedAtMs = nowMs();
    await load.untilAcknowledged(ENOUGH);
    const promoted = openDatabase(url(other));
    // What was unfinished is held for a lease.
    await expect.poll(() => promoted.query(UNFINISHED)).toEqual([]);
    const [replayed] = await promoted.query<{ ago: number }>(
      "select extract(epoch from clock_timestamp() - pg_last_xact_replay_timestamp())::float8 * 1000 as ago",
    );
    const replayedAtMs = nowMs() - (replayed?.ago ?? 0);
    await promoted.close();
    const met = await load.repeat(killedAtMs);

    // The old region's files are of no use.
    const texts = {
      [`primary=${main}`]: `primary=${standby}`,
      [`standby=${standby}`]: `standby=${main}`,
    };
    const before = { pg_basebackup: [`rm -r ${main}`], "pg_ctl start": [listenAt(home, main)] };
    await sections(["Add a standby"], { texts: { ...texts, [home]: other }, before });
    await sections(["Back again"], { texts }, REGIONS);
    const switchedAtMs = nowMs();
    await load.moveTo(url(home));
    await load.untilAcknowledged(ENOUGH);
    const metAgain = await load.repeat(switchedAtMs);
    const restore = {
      copiedFromMs: replayedAtMs - TOLERANCE_MS,
      copiedToMs: killedAtMs,
      restoredFromMs: killedAtMs,
      restoredToMs: movedAtMs,
    };
    expect(await load.stop(isLossy ? [restore] : [])).toEqual([]);
    const figures = JSON.stringify({ met, metAgain, servedAfterMs: movedAtMs - killedAtMs });
    process.stdout.write(`${standing}: ${figures}\n`);
    const any = expect.any(Number);
    const { [`${PLAIN} claimed`]: grantedAgain, ...others } = met;
    // Those that were granted again are completed again; all others are as before.
    const kept = { [`${PLAIN} completed`]: any, [`${LATE} completed`]: any };
    expect(metAgain).toEqual({ ...others, ...kept });
    if (!isLossy) expect(met).toEqual(kept);
    else {
      expect(grantedAgain).toBeGreaterThan(0);
      expect(met).toMatchObject({ [`${LATE} KEY_TOO_OLD`]: any });
      expect(met).not.toHaveProperty([`${LATE} claimed`]);
    }
  });
});
