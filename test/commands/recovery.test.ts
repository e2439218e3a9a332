import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { durationFromMs, timestampNow } from "@bufbuild/protobuf/wkt";
import { describe, expect, onTestFinished, test } from "vitest";
import { connectClient } from "../support/calls/clients.ts";
import { errorOf } from "../support/calls/errors.ts";
import { complete, grant, ORDER, success } from "../support/calls/verbs.ts";
import { openDatabase } from "../support/database/database.ts";
import {
  findPostgresTools,
  layOutPostgresMachine,
  type PostgresMachine,
} from "../support/database/postgres-tools.ts";
import { createWorkplace, type Workplace } from "../support/processes/command.ts";
import { followSteps, missingLine, type Step, stepsOf } from "../support/processes/follow-readme.ts";
import { startTestServer } from "../support/servers/server.ts";
import { createTenant, setNamespacePolicy } from "../support/servers/tenants.ts";

const PAGE = "deploy/recovery.md";
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
    async sections(names: readonly string[], changes: Changes = {}) {
      const steps = (await Promise.all(["", ...names].map((name) => stepsOf(PAGE, name)))).flat();
      for (const name of names) rehearsed.add(name);
      await shell(steps.flatMap((step) => changed(step, machine, changes)));
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
  const replaced = Object.entries({
    "PGHOST=db1": `PGHOST=${sockets[0]}`,
    "PGHOST=db2": `PGHOST=${sockets[1]}`,
    "/var/lib/postgresql/18": dataDir,
    "/mnt/backups": dataDir,
    "'PEPPER'": '"$ONCEWARD_API_KEY_PEPPER"',
    [SERVICE_ROLE_OF_PAGE]: SERVICE_ROLE,
    [MARK_LOSS]: fileURLToPath(new URL(`../../${MARK_LOSS}`, import.meta.url)),
    ...texts,
  }).reduce((command, [from, to]) => command.replaceAll(from, to), step.command);
  const extra = Object.entries(before ?? {}).filter(([start]) => step.command.startsWith(start));
  return [
    ...extra.flatMap(([, commands]) => commands.map((command) => ({ command, printed: [] }))),
    { ...step, command: replaced },
  ];
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

/** Opens a database, and starts a replica on it. */
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
