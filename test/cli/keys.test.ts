import { expect, test } from "vitest";
import { connectClient } from "../support/calls/clients.ts";
import { errorOf } from "../support/calls/errors.ts";
import { awaitYoungHour } from "../support/database/time.ts";
import { cliFor, failed } from "../support/processes/cli.ts";
import { useCliWorld } from "../support/processes/cli-world.ts";
import { partsOf } from "../support/servers/tenants.ts";

/** Usage is stored at once, so that a test need not wait. */
const world = useCliWorld({ ONCEWARD_USAGE_FLUSH: "100ms" });
const CLAIM = { namespace: "charges", key: "order-1" };

test("a new key's secret is printed as the result, works, and is never shown again", async () => {
  const { cli } = await world().tenantWithCli();
  const made = await cli("keys create --role caller --label payments --namespace charges");
  expect(made.stdout).toMatch(/^ow_[a-z0-9]{16}_[\w-]{43}\n$/);
  const secret = made.stdout.trim();
  const caller = connectClient(world().server, secret);
  expect((await caller.claim(CLAIM)).outcome.case).toBe("claimed");
  expect(await errorOf(caller.claim({ ...CLAIM, namespace: "refunds" }))).toMatchObject({
    reason: "NAMESPACE_DENIED",
  });

  const { id } = partsOf(secret);
  const { stdout } = await cli("keys", "list", "--wide");
  expect(stdout).toMatch(new RegExp(`^${id} +caller +payments +charges `, "m"));
  const audited = await cli.json("audit", "list");
  expect(made.stderr + stdout + JSON.stringify(audited)).not.toContain(secret.slice(-43));
});

test("a key that was revoked is refused", async () => {
  const { cli } = await world().tenantWithCli();
  const made = await cli.json("keys", "create", "--role", "caller", "--expires", "90d");
  const { apiKey, secret } = made as { apiKey: { id: string; expiresAt: string }; secret: string };
  expect(Date.parse(apiKey.expiresAt)).toBeGreaterThan(Date.now() + 89 * 86_400_000);
  expect(await cli("keys", "revoke", apiKey.id)).toMatchObject({ exit: 2 });
  expect(await cli("keys", "revoke", apiKey.id, "--yes")).toMatchObject({ exit: 0 });
  const caller = connectClient(world().server, secret);
  expect(await errorOf(caller.claim(CLAIM))).toMatchObject({ reason: "CREDENTIAL_INVALID" });
  expect(await cli("keys", "revoke", "0000000000000000", "--yes")).toMatchObject({ exit: 4 });
});

test("a change refused for its caller is in the audit, with the printed request id", async () => {
  const { cli, tenant } = await world().tenantWithCli();
  const asCaller = cliFor(world().server, tenant.apiKey);
  const refused = await asCaller("keys", "create", "--role", "caller");
  expect(refused).toMatchObject(failed(1, "ROLE_DENIED"));
  const [, requestId] = /\(request (\S+)\)\n$/.exec(refused.stderr) ?? [];
  // Denials are written beside their answers.
  await expect
    .poll(() => cli.json("audit", "list", "--action", "CreateApiKey"))
    .toMatchObject([{ outcome: "OUTCOME_DENIED", denial: "ROLE_DENIED", requestId }]);
});

test.each([
  [
    "a field beyond its limit",
    ["tenant", "set", "--max-lease", "30h", "--key-retention", "1s", "--yes"],
    1,
    /INVALID_REQUEST: .*policy\.key_retention .*; policy\.max_lease |INVALID_REQUEST: .*policy\.max_lease .*; policy\.key_retention /,
  ],
  ["what isn't there", ["records", "show", "charges", "order-9"], 4, /RECORD_NOT_FOUND/],
  ["another role's RPC", ["operator", "info"], 1, /ROLE_DENIED/],
] as const)(
  "%s is one line on standard error, with a request id and no secret",
  async (_, args, exit, line) => {
    const { cli, adminKey, caller } = await world().tenantWithCli();
    await caller.claim({ namespace: "charges", key: "order-1" });
    const ended = await cli(...args);
    expect(ended).toMatchObject({ exit, stdout: "" });
    expect(ended.stderr).toMatch(/^onceward: [^\n]* \(request cli-[\w-]+\)\n$/);
    expect(ended.stderr).toMatch(line);
    expect(ended.stderr).not.toContain(adminKey.slice(-43));
  },
);

test("a wrong credential and an unreachable service have different exit codes", async () => {
  const wrong = cliFor(world().server, "ow_0000000000000000_wrong");
  expect(await wrong("tenant", "show")).toMatchObject(failed(1, "CREDENTIAL_INVALID"));
  expect(await cliFor({ grpcPort: 1 }, "ow_any")("tenant", "show")).toEqual({
    exit: 3,
    stdout: "",
    stderr: expect.stringMatching(/^onceward: The service does not answer: connect ECONNREFUSED [^\n]*\n$/),
  });
});

test("--web reports that neither a profile nor the service names a console", async () => {
  const { cli } = await world().tenantWithCli();
  expect(await cli("audit", "list", "--web")).toMatchObject(
    failed(2, /^onceward: The console's address is unknown: the service names none\. /),
  );
});

test("a process of the command line ends as the command does, and prints the same", async () => {
  const { cli, tenant } = await world().tenantWithCli();
  const shown = await cli.asProcess("tenant", "show");
  expect(shown).toEqual(await cli("tenant", "show"));
  expect(shown).toMatchObject({ exit: 0, stdout: expect.stringContaining(tenant.name), stderr: "" });
  const refused = await cli.asProcess("operator", "info");
  expect(refused).toMatchObject(failed(1, "ROLE_DENIED"));
  expect(await cli.asProcess("tenant", "nothing")).toMatchObject({ exit: 2, stdout: "" });
});

test("usage is shown by hour, with how late duplicates came", async () => {
  await awaitYoungHour();
  const { cli, caller } = await world().tenantWithCli();
  for (let repeat = 0; repeat < 3; repeat++) await caller.claim(CLAIM);
  const show = async () => await cli("usage", "show", "--namespace", "charges", "--wide");
  // Usage is stored now and then.
  await expect.poll(async () => (await show()).stdout).toMatch(/ charges +3 /);
  const { exit, stdout } = await show();
  expect(exit).toBe(0);
  expect(stdout).toMatch(/ charges +3 +1 +2 +0 +2 /);
  expect(stdout).toContain("How late duplicates came in charges");
  expect((await cli("usage", "show", "--by-hour", "--wide")).stdout).toMatch(/ all +3 +1 +2 +0 +2 .*\n$/);
});
