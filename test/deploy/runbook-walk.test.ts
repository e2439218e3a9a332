import { copyFile, rm } from "node:fs/promises";
import { expect, onTestFinished, test } from "vitest";
import { connectClient, type IdempotencyClient } from "../support/calls/clients.ts";
import { describeError } from "../support/calls/errors.ts";
import { grant, ORDER, success } from "../support/calls/verbs.ts";
import { openDatabase } from "../support/database/database.ts";
import { connectAsPerson, fillTable, openGreedily } from "../support/database/incidents.ts";
import { useOwnPostgres } from "../support/database/own-postgres.ts";
import { createServiceRole } from "../support/database/service-role.ts";
import { readRepositoryFile } from "../support/deploy/expressions.ts";
import { typeCommands } from "../support/deploy/type-commands.ts";
import {
  type Certificate,
  makeCertificate,
  makeExpiredCertificate,
  tlsSettings,
} from "../support/network/certificates.ts";
import { createWorkplace, runCommand } from "../support/processes/command.ts";
import { makeDataDir } from "../support/processes/data-dir.ts";
import { settingsFor } from "../support/processes/serve.ts";
import { isMountable } from "../support/processes/small-disk.ts";
import { encryptionKeys } from "../support/servers/encryption.ts";
import { TEST_PEPPER } from "../support/servers/server.ts";
import { createApiKey, setNamespacePolicy, type TestTenant } from "../support/servers/tenants.ts";
import { startProcessOfTest, startServerOfTest } from "../support/servers/use-server.ts";

const MAX_CONNECTIONS = 30;
const postgres = useOwnPostgres({ fsync: "off", max_connections: String(MAX_CONNECTIONS) });
const PATIENCE = { timeout: 30_000 };

/**
 * Returns the statements of a section of the runbook and its lines for a shell, one for each block, and the commands of the
 * server that it names.
 */
function sectionOf(heading: string) {
  const [, section = ""] = readRepositoryFile("deploy/runbook.md").split(`## ${heading}\n`);
  const [text = ""] = section.split(/^##/m);
  return {
    statements: [...text.matchAll(/^```sql\n([\s\S]*?)^```$/gm)].map(([, sql = ""]) => sql),
    shell: [...text.matchAll(/^```(?:sh|bash)\n([\s\S]*?)^```$/gm)].map(([, lines = ""]) => lines),
    commands: [...text.matchAll(/`onceward-server ([^`]+)`/g)].map(([, command = ""]) => command.split(" ")),
  };
}

/** A migrated database with a role of the service that is not a superuser, a tenant, and a replica. */
async function startInstallation(settings: Readonly<Record<string, string>> = {}) {
  const url = await postgres.createDatabase();
  const workplace = await createWorkplace();
  const run = (args: readonly string[], changed: Readonly<Record<string, string>> = {}) =>
    runCommand(args, workplace, { ...settingsFor(url), ...settings, ...changed });
  await run(["migrate"]);
  const database = openDatabase(url);
  onTestFinished(() => database.close());
  const service = await createServiceRole(database);
  const serve = async (changed: Readonly<Record<string, string>> = {}) => {
    return await startProcessOfTest(service.url, { ...settings, ...changed });
  };
  const server = await serve();
  const made = await run(["tenant-key", "--tenant", "acme"]);
  return { url, serviceUrl: service.url, database, run, serve, server, apiKey: made.stdout.trim() };
}

async function typeStatements(url: string, statements: readonly string[]): Promise<void> {
  const person = await connectAsPerson(url);
  for (const statement of statements) expect((await person.query(statement)).rowCount).toBeGreaterThan(0);
  await person.end();
}

/** Claims a key, and returns how it was answered: the outcome, or the error's reason. */
async function answerOf(client: IdempotencyClient, key: string): Promise<string | undefined> {
  return client.claim({ ...ORDER, key }).then(
    ({ outcome }) => outcome.case,
    (error: unknown) => describeError(error).reason,
  );
}

test("a long transaction is open", async () => {
  const { url, server, apiKey } = await startInstallation();
  const client = connectClient(server, apiKey);
  const { fencingToken } = await grant(client, { key: "locked" });
  const forgotten = await connectAsPerson(url);
  await forgotten.query("begin");
  await forgotten.query("update records set owner = owner");
  const complete = () =>
    client.complete({ ...ORDER, key: "locked", fencingToken, result: success("paid") }).then(
      () => "completed",
      (error: unknown) => describeError(error).reason,
    );
  expect(await complete()).toBe("RECORD_CONTENDED");
  await typeStatements(url, sectionOf("A long transaction is open").statements);
  expect(await complete()).toBe("completed");
});

test("connections are exhausted", async () => {
  const { url, serviceUrl, database, server, apiKey } = await startInstallation();
  const client = connectClient(server, apiKey);
  expect(await answerOf(client, "before")).toBe("claimed");
  const person = await connectAsPerson(url);
  // Its idle connections would end unaided, and leave room.
  await database.close();
  const others = openGreedily(serviceUrl);
  onTestFinished(others.stop);
  // What the replica has is taken as soon as it is free.
  await expect
    .poll(async () => {
      const ended = await person.query(
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'onceward'",
      );
      return [ended.rowCount, await answerOf(client, "during")];
    }, PATIENCE)
    .toEqual([0, "DATABASE_UNAVAILABLE"]);
  await others.stop();
  await typeStatements(url, sectionOf("Connections are exhausted").statements);
  await expect.poll(() => answerOf(client, "after"), PATIENCE).toMatch(/^(claimed|inProgress)$/);
});

/** A disk of a fixed size is a file system of its own. */
const canMount = await isMountable();
if (!canMount) process.stderr.write("Skipped the full disk of the runbook: no disk could be mounted.\n");

test.runIf(canMount)("the disk is full", async () => {
  const { url, database, server, apiKey, run } = await startInstallation();
  const client = connectClient(server, apiKey);
  const { fencingToken } = await grant(client, { key: "completed" });
  await client.complete({ ...ORDER, key: "completed", fencingToken, result: success("paid") });
  const dump = await fillTable(database, "records", postgres.dataDir());
  let keys = 0;
  /** Fills what the table has left of its last pages, too. */
  const fill = async () => {
    const key = `key-${keys++}`;
    return await grant(client, { key })
      .then(({ fencingToken: token }) =>
        client.complete({ ...ORDER, key, fencingToken: token, result: success("x".repeat(60_000)) }),
      )
      .then(
        () => "completed",
        (error: unknown) => describeError(error).reason,
      );
  };
  await expect.poll(fill, PATIENCE).toBe("DATABASE_UNAVAILABLE");
  expect(await answerOf(client, "completed")).toBe("completed");
  const doctor = await run(["doctor"]);
  expect(doctor).toMatchObject({ exit: 2, stdout: expect.stringMatching(/SQLSTATE 53100: .*No space left/) });
  const person = await connectAsPerson(url);
  for (const statement of sectionOf("The disk is full").statements) await person.query(statement);
  await person.end();
  await rm(dump);
  await expect.poll(fill, PATIENCE).toBe("completed");
  expect((await run(["doctor"])).stdout).not.toContain("writes_fail");
  expect(await database.query("select from records where tenant_id = 0")).toEqual([]);
});

test("an encryption key is lost, and put back", async () => {
  const installation = await startInstallation(encryptionKeys(1));
  const { server, apiKey, run, serve } = installation;
  const { fencingToken } = await grant(connectClient(server, apiKey), { key: "order-1" });
  await connectClient(server, apiKey).complete({
    ...ORDER,
    key: "order-1",
    fencingToken,
    result: success("paid"),
  });
  await server.end();
  expect(await run(["serve"], encryptionKeys(2))).toMatchObject({
    exit: 1,
    stderr: expect.stringContaining("deploy/runbook.md#records_unreadable"),
  });
  const without = await serve(encryptionKeys("none", 2));
  expect(await answerOf(connectClient(without, apiKey), "order-1")).toBe("RECORD_UNREADABLE");
  const { commands } = sectionOf("Records are unreadable");
  expect(commands).toEqual([["encryption-status"]]);
  expect(await run(commands[0] ?? [], encryptionKeys(2))).toMatchObject({
    exit: 1,
    stdout: expect.stringContaining("key 1 (not configured): 1 results"),
  });
  await without.end();
  const healthy = await serve(encryptionKeys(2, 1));
  expect(await answerOf(connectClient(healthy, apiKey), "order-1")).toBe("completed");
});

test("the pepper is lost", async () => {
  const { url, database, server, apiKey, run, serve } = await startInstallation();
  const { fencingToken } = await grant(connectClient(server, apiKey), { key: "order-1" });
  await connectClient(server, apiKey).complete({
    ...ORDER,
    key: "order-1",
    fencingToken,
    result: success("paid"),
  });
  await server.end();
  const fresh = { ONCEWARD_API_KEY_PEPPER: TEST_PEPPER.split("").toReversed().join("") };
  expect(await run(["serve"], fresh)).toMatchObject({
    exit: 1,
    stderr: expect.stringContaining("deploy/runbook.md#pepper_wrong"),
  });
  const { statements, commands } = sectionOf("pepper_wrong");
  await typeStatements(url, statements);
  const again = await serve(fresh);
  expect(await answerOf(connectClient(again, apiKey), "order-1")).toBe("CREDENTIAL_INVALID");
  const [makeKey = []] = commands;
  const made = await run(
    makeKey.map((part) => (part === "NAME" ? "acme" : part)),
    fresh,
  );
  expect(await answerOf(connectClient(again, made.stdout.trim()), "order-1")).toBe("completed");
  expect(await database.query("select from pepper_check")).toHaveLength(1);
});

/** Starts a replica with a certificate on an installation; returns how a caller that trusts an authority is answered. */
async function serveWith(certificate: Certificate) {
  const { url, apiKey } = await startInstallation();
  const server = await startServerOfTest(url, tlsSettings(certificate), { certificateLookMs: 50 });
  const answerWith = (ca: string) =>
    connectClient(server, apiKey, "native gRPC", { ca })
      .lookup(ORDER)
      .then(
        () => "served",
        (error: unknown) => String(error),
      );
  const [command = ""] = sectionOf("A certificate expires").shell;
  const place = {
    dir: await makeDataDir("ow-certificate-"),
    env: { address: `127.0.0.1:${server.grpcPort}` },
  };
  return { answerWith, confirm: () => typeCommands(command, place) };
}

/** Writes a renewed certificate over the files of a replica. */
async function renew(previous: Certificate, renewed: Certificate): Promise<void> {
  await copyFile(renewed.keyFile, previous.keyFile);
  await copyFile(renewed.certificateFile, previous.certificateFile);
}

test("the certificate has expired", async () => {
  const [expired, renewed] = await Promise.all([makeExpiredCertificate(), makeCertificate()]);
  onTestFinished(async () => void (await Promise.all([expired.remove(), renewed.remove()])));
  const { answerWith, confirm } = await serveWith(expired);
  const both = expired.pem.cert + renewed.pem.cert;
  expect(await answerWith(both)).toContain("certificate has expired");
  const shown = expect.stringMatching(/notAfter=.* 2020 GMT\nCertificate will expire/);
  expect(await confirm()).toEqual({ exit: 1, stdout: shown });
  await renew(expired, renewed);
  await expect.poll(() => answerWith(both), PATIENCE).toBe("served");
});

test("the authority of the certificate has changed, and replicas have the previous certificate", async () => {
  const [previous, renewed] = await Promise.all([makeCertificate(), makeCertificate()]);
  onTestFinished(async () => void (await Promise.all([previous.remove(), renewed.remove()])));
  const oldAuthority = previous.pem.cert;
  const { answerWith, confirm } = await serveWith(previous);
  const both = oldAuthority + renewed.pem.cert;
  expect(await answerWith(renewed.pem.cert)).toContain("self-signed certificate");
  expect(await answerWith(both)).toBe("served");
  const shown = expect.stringMatching(/issuer.*localhost\nnotAfter=.*\nCertificate will not expire/);
  expect(await confirm()).toEqual({ exit: 0, stdout: shown });
  await renew(previous, renewed);
  await expect.poll(() => answerWith(renewed.pem.cert), PATIENCE).toBe("served");
  expect(await answerWith(both)).toBe("served");
  expect(await answerWith(oldAuthority)).toContain("self-signed certificate");
});

test("ambiguous records wait for a decision", async () => {
  const { database, server, apiKey } = await startInstallation();
  const client = connectClient(server, apiKey);
  const [tenant] = await database.query<TestTenant>("select id, name from tenants where name = 'acme'");
  if (tenant === undefined) throw new Error("the installation has no tenant");
  await setNamespacePolicy(database, tenant, "payouts", { on_lease_expiry: "HOLD" });
  const payout = { namespace: "payouts", key: "payout-7" };
  await grant(client, { ...payout, owner: "worker-3" });
  await database.query("update records set lease_expires_at = now() - interval '1 second'");
  expect((await client.claim(payout)).outcome.case).toBe("ambiguous");

  const dir = await makeDataDir("ow-ambiguous-");
  const [look = ""] = sectionOf("Ambiguous records wait for a decision").shell;
  const replica = { dir, env: { replica: `http://127.0.0.1:${server.managementPort}` } };
  await expect
    .poll(async () => (await typeCommands(look, replica)).stdout, PATIENCE)
    .toContain('onceward_ambiguous_records{tenant="acme"} 1');
  const key = await createApiKey(database, { tenantId: tenant.id, role: "TENANT_ADMIN" });
  const admin = { ONCEWARD_ADDRESS: `http://127.0.0.1:${server.grpcPort}`, ONCEWARD_API_KEY: key };
  const page = readRepositoryFile("clients/cli/tenant-admins.md");
  const [list = ""] = /^onceward records list --state ambiguous.*$/m.exec(page) ?? [];
  expect((await typeCommands(list, { dir, env: admin })).stdout).toMatch(
    /^payouts +ambiguous +worker-3 .*payout-7$/m,
  );
  const [resolve = ""] = /^onceward records resolve payouts payout-7 --complete.*$/m.exec(page) ?? [];
  expect(await typeCommands(resolve, { dir, env: admin })).toMatchObject({ exit: 0 });
  expect((await client.claim(payout)).outcome.case).toBe("completed");
});

test("a tenant takes most of the capacity", async () => {
  const operatorKey = `ow_0123456789abcdef_${"o".repeat(43)}`;
  const settings = { ONCEWARD_OPERATOR_KEY: operatorKey, ONCEWARD_USAGE_FLUSH: "100ms" };
  const { server, apiKey, run: runServer } = await startInstallation(settings);
  const greedy = connectClient(server, apiKey);
  const made = await runServer(["tenant-key", "--tenant", "globex"]);
  const neighbour = connectClient(server, made.stdout.trim());
  let keys = 0;
  const flood = async () =>
    new Set(await Promise.all(Array.from({ length: 300 }, () => answerOf(greedy, `key-${keys++}`))));
  expect(await flood()).toEqual(new Set(["claimed"]));
  const [look = "", limit = ""] = sectionOf("A tenant takes most of the capacity").shell;
  const env = { ONCEWARD_ADDRESS: `http://127.0.0.1:${server.grpcPort}`, ONCEWARD_API_KEY: operatorKey };
  const place = { dir: await makeDataDir("ow-greedy-"), env };
  await expect
    .poll(async () => (await typeCommands(look, place)).stdout, PATIENCE)
    .toMatch(/^acme +(?!0\.0 )[\d.]+ /m);
  expect(await typeCommands(limit.replace("demo", "acme"), place)).toMatchObject({ exit: 0 });
  await expect.poll(flood, PATIENCE).toContain("QUOTA_RATE");
  expect(await answerOf(neighbour, "key-of-globex")).toBe("claimed");
});
