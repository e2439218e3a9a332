import { expect, test } from "vitest";
import { parseApiKey } from "../../server/src/auth/api-key.ts";
import { connectOperator } from "../helpers/calls/admin.ts";
import { connectClient } from "../helpers/calls/clients.ts";
import { errorOf } from "../helpers/calls/errors.ts";
import { useOwnPostgres } from "../helpers/database/own-postgres.ts";
import { createWorkplace, runCommand } from "../helpers/processes/command.ts";
import { settingsFor, startServe } from "../helpers/processes/serve.ts";

const postgres = useOwnPostgres();
const CLAIM = { namespace: "charges", key: "order-1" };
const KEY = /^ow_[a-z0-9]{16}_[\w-]{43}\n$/;

test("printed keys work, each for its tenant and its role", async () => {
  const workplace = await createWorkplace();
  const settings = settingsFor(await postgres.createDatabase());
  const serve = await startServe(workplace, settings);
  const keyOf = async (...args: string[]) => {
    const { exit, stdout, stderr } = await runCommand(args, workplace, settings);
    expect({ exit, stderr }).toEqual({ exit: 0, stderr: "" });
    expect(stdout).toMatch(KEY);
    return stdout.trim();
  };
  const claimWith = (key: string) => connectClient(serve, key).claim(CLAIM);

  const acme = await keyOf("tenant-key", "--tenant", "acme");
  expect((await claimWith(acme)).outcome.case).toBe("claimed");
  const acmeAgain = await keyOf("tenant-key", "--tenant", "acme");
  expect(acmeAgain).not.toBe(acme);
  expect((await claimWith(acmeAgain)).outcome.case).toBe("inProgress");
  const other = await keyOf("tenant-key", "--tenant", "other", "--role", "caller");
  expect((await claimWith(other)).outcome.case).toBe("claimed");

  for (const denied of [
    await keyOf("operator-key"),
    await keyOf("tenant-key", "--tenant", "acme", "--role", "admin"),
  ]) {
    expect(await errorOf(claimWith(denied))).toMatchObject({ reason: "ROLE_DENIED" });
  }
});

test("printed keys and tenants that are created for them are audited", async () => {
  const workplace = await createWorkplace();
  const settings = settingsFor(await postgres.createDatabase());
  const serve = await startServe(workplace, settings);
  const keys: string[] = [];
  for (const args of [
    ["operator-key"],
    ["tenant-key", "--tenant", "acme"],
    ["tenant-key", "--tenant", "acme", "--role", "admin"],
  ]) {
    keys.push((await runCommand(args, workplace, settings)).stdout.trim());
  }
  const operator = connectOperator(serve, keys[0] ?? "");
  const { events } = await operator.listAuditEvents({});
  const [operatorsKey, callersKey, adminsKey] = keys.map((key) => `api key ${parseApiKey(key)?.id}`);
  const done = { actor: "onceward-server", requestId: expect.stringMatching(/./) };
  expect(events.toReversed()).toMatchObject([
    { ...done, tenant: "", action: "CreateOperatorApiKey", target: operatorsKey },
    { ...done, tenant: "acme", action: "CreateTenant", target: "tenant acme" },
    { ...done, tenant: "acme", action: "CreateTenantApiKey", target: callersKey, after: { role: "CALLER" } },
    {
      ...done,
      tenant: "acme",
      action: "CreateTenantApiKey",
      target: adminsKey,
      after: { role: "TENANT_ADMIN" },
    },
  ]);
  expect(JSON.stringify(events.map(({ after }) => after))).not.toContain(parseApiKey(keys[0] ?? "")?.secret);
});

test("a tenant that is being deleted gets no key", async () => {
  const workplace = await createWorkplace();
  const settings = settingsFor(await postgres.createDatabase());
  const serve = await startServe(workplace, settings);
  const { stdout } = await runCommand(["operator-key"], workplace, settings);
  await runCommand(["tenant-key", "--tenant", "acme"], workplace, settings);
  await connectOperator(serve, stdout.trim()).deleteTenant({ name: "acme" });
  expect(await runCommand(["tenant-key", "--tenant", "acme"], workplace, settings)).toMatchObject({
    exit: 1,
    stdout: "",
    stderr: "tenant acme is being deleted\n",
  });
});

test.each([
  [["tenant-key"], /^--tenant must match /],
  [["tenant-key", "--tenant", "acme", "--role", "operator"], /^--role must be caller or admin\n$/],
  [["tenant-key", "--tenant", "acme", "--rôle", "admin"], /^Unknown option '--rôle'/],
  [["operator-key"], /^The schema lacks .* Run: onceward-server migrate\n$/],
])("%j on a database without a schema prints no key, but what is wrong", async (args, message) => {
  const ended = await runCommand(args, await createWorkplace(), settingsFor(await postgres.createDatabase()));
  expect(ended).toMatchObject({ exit: 1, stdout: "" });
  expect(ended.stderr).toMatch(message);
  expect(ended.stderr).not.toMatch(/\n\s+at /);
});
