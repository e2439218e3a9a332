import { expect, test } from "vitest";
import { parseApiKey } from "../../server/src/access/api-key.ts";
import { connectOperator } from "../support/calls/admin.ts";
import { connectClient } from "../support/calls/clients.ts";
import { errorOf } from "../support/calls/errors.ts";
import { createDatabaseOfTest } from "../support/database/database.ts";
import { createWorkplace, type Ended, runCommand } from "../support/processes/command.ts";
import { runHere } from "../support/processes/run-here.ts";
import { settingsFor, startServe } from "../support/processes/serve.ts";

const CLAIM = { namespace: "charges", key: "order-1" };
const KEY = /^ow_[a-z0-9]{16}_[\w-]{43}\n$/;

test("printed keys and tenants created for them work and are audited; a deleted one gets none", async () => {
  const workplace = await createWorkplace();
  const settings = settingsFor((await createDatabaseOfTest()).url);
  const serve = await startServe(workplace, settings);
  const keyOf = async (...args: string[]) => keyIn(await runHere(args, settings));
  const claimWith = (key: string) => connectClient(serve, key).claim(CLAIM);

  const operatorKey = keyIn(await runCommand(["operator-key"], workplace, settings));
  const acme = await keyOf("tenant-key", "--tenant", "acme");
  expect((await claimWith(acme)).outcome.case).toBe("claimed");
  const acmeAgain = await keyOf("tenant-key", "--tenant", "acme");
  expect(acmeAgain).not.toBe(acme);
  expect((await claimWith(acmeAgain)).outcome.case).toBe("inProgress");
  const other = await keyOf("tenant-key", "--tenant", "other", "--role", "caller");
  expect((await claimWith(other)).outcome.case).toBe("claimed");
  const admin = await keyOf("tenant-key", "--tenant", "acme", "--role", "admin");
  const operator = connectOperator(serve, operatorKey);
  const { events } = await operator.listAuditEvents({});
  const done = { actor: "onceward-server", requestId: expect.stringMatching(/./) };
  const created = (tenant: string) => ({
    ...done,
    tenant,
    action: "CreateTenant",
    target: `tenant ${tenant}`,
  });
  const keyFor = (tenant: string, key: string, role: string) => ({
    ...done,
    tenant,
    action: "CreateTenantApiKey",
    target: targetOf(key),
    after: { role },
  });
  expect(events.toReversed()).toMatchObject([
    { ...done, tenant: "", action: "CreateOperatorApiKey", target: targetOf(operatorKey) },
    created("acme"),
    keyFor("acme", acme, "CALLER"),
    keyFor("acme", acmeAgain, "CALLER"),
    created("other"),
    keyFor("other", other, "CALLER"),
    keyFor("acme", admin, "TENANT_ADMIN"),
  ]);
  const details = JSON.stringify(events.map(({ after }) => after));
  expect(details).not.toContain(parseApiKey(operatorKey)?.secret);

  for (const denied of [operatorKey, admin]) {
    expect(await errorOf(claimWith(denied))).toMatchObject({ reason: "ROLE_DENIED" });
  }

  await operator.deleteTenant({ name: "acme" });
  expect(await runHere(["tenant-key", "--tenant", "acme"], settings)).toMatchObject({
    exit: 1,
    stdout: "",
    stderr: "tenant acme is being deleted\n",
  });
});

/** Returns the key that a command printed, and nothing else. */
function keyIn({ exit, stdout, stderr }: Ended): string {
  expect({ exit, stderr }).toEqual({ exit: 0, stderr: "" });
  expect(stdout).toMatch(KEY);
  return stdout.trim();
}

function targetOf(key: string): string {
  return `api key ${parseApiKey(key)?.id}`;
}

test.each([
  [["tenant-key"], /^--tenant must be 1-63 lower-case letters/],
  [["tenant-key", "--tenant", "acme", "--role", "operator"], /^--role must be caller or admin\n$/],
  // With control characters, which never reach the terminal: an error may repeat a text of anybody.
  [["tenant-key", "--tenant", "acme", "--rôle\u001b[31m", "admin"], /^Unknown option '--rôle\ufffd\[31m'/],
  [["operator-key"], /^The schema lacks .* Run: onceward-server migrate\n$/],
])("%j on a database without a schema prints no key, but what is wrong", async (args, message) => {
  const { url } = await createDatabaseOfTest("template0");
  const ended = await runHere(args, settingsFor(url));
  expect(ended).toMatchObject({ exit: 1, stdout: "" });
  expect(ended.stderr).toMatch(message);
  expect(ended.stderr).not.toMatch(/\n\s+at /);
});
