import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Code } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { connectClient, type IdempotencyClient } from "../support/calls/clients.ts";
import { grant, ORDER, success } from "../support/calls/verbs.ts";
import { useDatabase } from "../support/database/use-database.ts";
import { readRepositoryFile } from "../support/deploy/expressions.ts";
import { typeCommands } from "../support/deploy/type-commands.ts";
import { makeDataDir } from "../support/processes/data-dir.ts";
import { createApiKey, createTenant } from "../support/servers/tenants.ts";
import { startProcessOfTest } from "../support/servers/use-server.ts";

const database = useDatabase();

interface OperationLine {
  readonly kind: string;
  readonly outcome: string;
  readonly requestId: string;
  readonly tenant: string;
  readonly unlogged?: number;
}

/** Returns the operations that the last command of the runbook's section finds. */
async function typeSection(lines: readonly string[], env: Readonly<Record<string, string>>) {
  const [, section = ""] = readRepositoryFile("deploy/runbook.md").split("## What happened to a key\n");
  const [, commands = ""] = /^```bash\n([\s\S]*?)^```$/m.exec(section) ?? [];
  const dir = await makeDataDir("ow-key-history-");
  await writeFile(join(dir, "replicas.log"), lines.join("\n"));
  const { stdout } = await typeCommands(commands, { dir, env });
  const found = stdout.split("\n").filter((line) => line.startsWith("{"));
  return { stdout, found: found.map((line) => JSON.parse(line) as OperationLine) };
}

/** A server with a tenant, its caller, and the environment of its administrator's command line. */
async function startWith(level: string) {
  const server = await startProcessOfTest(database.url, { ONCEWARD_LOG_LEVEL: level });
  const tenant = await createTenant(database);
  const caller = connectClient(server, tenant.apiKey);
  const env = {
    ONCEWARD_ADDRESS: `http://127.0.0.1:${server.grpcPort}`,
    ONCEWARD_API_KEY: await createApiKey(database, { tenantId: tenant.id, role: "TENANT_ADMIN" }),
  };
  return { server, tenant, caller, env };
}

/** Claims with another fingerprint, which is refused. */
async function mismatch(caller: IdempotencyClient, requestId: string): Promise<void> {
  const request = { ...ORDER, fingerprint: new Uint8Array(32).fill(2) };
  const refused = caller.claim(request, { headers: { "x-request-id": requestId } });
  await expect(refused).rejects.toMatchObject({ code: Code.FailedPrecondition });
}

test("the runbook finds a call, a replay and a refusal of a key, with their request ids", async () => {
  const { server, tenant, caller, env } = await startWith("debug");
  const fingerprint = new Uint8Array(32).fill(1);
  await grant(caller, { key: "order-2" });
  const as = (id: string) => ({ headers: { "x-request-id": id } });
  const { outcome } = await caller.claim({ ...ORDER, fingerprint }, as("the-call"));
  const fencingToken = outcome.case === "claimed" ? outcome.value.fencingToken : 0n;
  await caller.complete({ ...ORDER, fencingToken, result: success("paid") }, as("the-completion"));
  await caller.claim({ ...ORDER, fingerprint }, as("the-replay"));
  await mismatch(caller, "the-refusal");
  await expect.poll(() => server.output.join("\n")).toContain("the-refusal");

  const { stdout, found } = await typeSection(server.output, env);
  expect(stdout).toContain("completed");
  expect(
    found.map(({ kind, outcome: became, requestId, tenant: name }) => [kind, became, requestId, name]),
  ).toEqual([
    ["claim", "claimed", "the-call", tenant.name],
    ["complete", "completed", "the-completion", tenant.name],
    ["claim", "completed", "the-replay", tenant.name],
    ["claim", "fingerprint_mismatch", "the-refusal", tenant.name],
  ]);
});

test("at info some refusals of each tenant are in the log; the others are counted", async () => {
  const { server, caller, env } = await startWith("info");
  await caller.claim({ ...ORDER, fingerprint: new Uint8Array(32).fill(1) });
  const { caller: neighbour } = { caller: connectClient(server, (await createTenant(database)).apiKey) };
  await Promise.all(Array.from({ length: 200 }, (_, index) => mismatch(caller, `flood-${index}`)));
  await neighbour.claim({ ...ORDER, fingerprint: new Uint8Array(32).fill(1) });
  await mismatch(neighbour, "of-the-neighbour");
  await expect.poll(() => server.output.join("\n")).toContain("of-the-neighbour");
  const { found } = await typeSection(server.output, env);
  expect(found.length).toBeGreaterThanOrEqual(5);
  const all = server.output
    .filter((line) => line.includes('"operation refused"'))
    .map((line) => JSON.parse(line));
  const unlogged = all.reduce((sum, { unlogged: count = 0 }) => sum + count, 0);
  expect(all.length + unlogged).toBe(201);
  expect(unlogged).toBeGreaterThan(0);
  expect(server.output.join("\n")).not.toContain(ORDER.key);
});

test("a key without a record has a name, too", async () => {
  const { server, caller, env } = await startWith("info");
  const unknown = caller.complete({ ...ORDER, fencingToken: 7n, result: success("paid") });
  await expect(unknown).rejects.toMatchObject({ code: Code.NotFound });
  await expect.poll(() => server.output.join("\n")).toContain("operation refused");
  const shell = typeSection(server.output, env);
  await expect(shell.then(({ found }) => found)).resolves.toMatchObject([
    { kind: "complete", outcome: "record_not_found" },
  ]);
});
