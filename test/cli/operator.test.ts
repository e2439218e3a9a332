import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { expect, test } from "vitest";
import { parseApiKey } from "../../server/src/access/api-key.ts";
import { cliFor, failed } from "../support/processes/cli.ts";
import { useCliWorld } from "../support/processes/cli-world.ts";

const world = useCliWorld();

async function withTenant() {
  const cli = await world().operatorCli();
  const name = `t-${randomBytes(6).toString("hex")}`;
  const tenants = (verb: string, ...args: string[]) => cli("operator", "tenants", verb, name, ...args);
  const limits = ["--operations-per-second", "500", "--max-key-retention", "30d"];
  expect(await tenants("create", ...limits)).toMatchObject({ exit: 0 });
  return { cli, name, tenants, shown: () => cli.json("operator", "tenants", "show", name) };
}

test("a tenant is created with its limits, and its administrator can use it", async () => {
  const { cli, name, tenants } = await withTenant();
  expect(await tenants("create")).toMatchObject(failed(1, "TENANT_EXISTS"));
  const made = await cli("operator tenant-key", name, "--role", "admin", "--label", "first admin");
  expect(made).toMatchObject({ exit: 0, stdout: expect.stringMatching(/^ow_\S+\n$/) });
  const admin = cliFor(world().server, made.stdout.trim());
  expect(await admin.json("tenant", "show")).toMatchObject({ name, quotas: { operationsPerSecond: 500 } });
  expect(await admin("tenant", "set", "--key-retention", "31d", "--yes")).toMatchObject(
    failed(1, "policy.key_retention"),
  );
});

test("limits are set one by one, and unset", async () => {
  const { name, tenants, shown } = await withTenant();
  expect(
    await tenants("limits", "--burst", "1000", "--stored-bytes", "5000000000", "--max-lease", "1h", "--yes"),
  ).toMatchObject({ exit: 0 });
  expect(await shown()).toMatchObject({
    policyBounds: { maxKeyRetention: "2592000s", maxLease: "3600s" },
    quotas: { operationsPerSecond: 500, burst: 1000, storedBytes: "5000000000" },
  });
  expect(await tenants("limits", "--burst", "none", "--quota-dry-run", "true", "--dry-run")).toMatchObject({
    exit: 0,
    stdout: expect.stringMatching(
      /^burst +1000 +→ as the operations per second$[\s\S]*^operations per second .* No claim came /m,
    ),
  });
  expect(await shown()).toMatchObject({ quotas: { burst: 1000, dryRun: false } });
  expect(await tenants("limits", "--burst", "none", "--quota-dry-run", "true", "--yes")).toMatchObject({
    exit: 0,
    stdout: `Set the limits of tenant ${name}; every replica follows within 10 s.\n`,
    stderr: expect.stringMatching(/^quota dry run +false +→ true$/m),
  });
  const { quotas } = (await shown()) as { quotas: Record<string, unknown> };
  expect(quotas).toMatchObject({ operationsPerSecond: 500, dryRun: true });
  expect(quotas).not.toHaveProperty("burst");
  expect(await tenants("limits")).toMatchObject({ exit: 2 });
});

test("a tenant is suspended, resumed and deleted, each for a reason that the audit keeps", async () => {
  const { cli, name, tenants, shown } = await withTenant();
  expect(await tenants("suspend")).toMatchObject({ exit: 2 });
  expect(await tenants("suspend", "--reason", "unpaid", "--yes")).toMatchObject({ exit: 0 });
  expect((await cli("operator", "tenants", "list")).stdout).toMatch(
    new RegExp(`^${name} +suspended +500 +unlimited$`, "m"),
  );
  expect(await tenants("resume", "--reason", "paid", "--yes")).toMatchObject({ exit: 0 });
  expect(await shown()).toMatchObject({ state: "STATE_ACTIVE" });
  expect(await tenants("redirect", "--reason", "moved", "--yes", "--to", "")).toMatchObject({ exit: 2 });
  expect(await tenants("redirect", "--reason", "no move", "--yes", "--to", "none")).toMatchObject({
    stdout: expect.stringMatching(/^Took back /),
  });
  expect(await tenants("delete", "--reason", "moved away")).toMatchObject({ exit: 2 });
  expect(await tenants("delete", "--reason", "moved away", "--yes")).toMatchObject({ exit: 0 });
  const events = await cli.json("operator", "audit", "--tenant", name);
  expect(events).toMatchObject([
    { action: "DeleteTenant", reason: "moved away" },
    { action: "ResumeTenant", reason: "paid" },
    { action: "SuspendTenant", reason: "unpaid" },
    { action: "CreateTenant" },
  ]);
  const resumed = ["--action", "ResumeTenant", "--tenant", name, "--columns", "outcome,reason"];
  expect((await cli("operator audit", ...resumed)).stdout).toMatch(/^OUTCOME +REASON\ndone +paid\n$/);
});

test("a change that refuses calls says so and asks for a name; without a terminal it needs --yes", async () => {
  const { cli: admin, caller, tenant } = await world().tenantWithCli();
  const cli = await world().operatorCli();
  const { name } = tenant;
  for (const key of ["order-1", "order-2"]) await caller.claim({ namespace: "charges", key });
  await admin("namespaces", "set", "charges", "--max-lease", "1h", "--yes");
  const id = parseApiKey(tenant.apiKey)?.id ?? "";
  const why = ["--reason", "a test"];
  const changes = [
    [cli, ["operator", "tenants", "limits", name, "--declared-namespaces", "1"], name, "Refuses new"],
    [admin, ["records", "resolve", "charges", "order-1", "--forget", ...why], "order-1", ""],
    [admin, ["namespaces", "delete", "charges", "--force"], "charges", "It has 1 record,"],
    [admin, ["keys", "revoke", id], id, /^role +caller\n(.+\n)+Calls with it are refused/m],
    [cli, ["operator", "tenants", "suspend", name, ...why], name, "every call of the tenant is refused"],
    [cli, ["operator", "tenants", "delete", name, ...why], name, "records are deleted"],
  ] as const;
  for (const [run, args, typed, effect] of changes) {
    const asked: string[] = [];
    const answer = (text: string) => (question: string) => {
      asked.push(question);
      return Promise.resolve(text);
    };
    const refused = await run(...args);
    expect(refused).toMatchObject({ exit: 2, stdout: "" });
    expect(refused.stderr).toMatch(effect);
    expect(refused.stderr).toMatch(/There is no terminal to ask on: give --yes\.\n$/);
    expect(await run.answering(answer("y"), ...args)).toMatchObject({
      ...{ exit: 1, stdout: "" },
      stderr: expect.stringContaining("Nothing was changed."),
    });
    expect(await run.answering(answer(typed), ...args)).toMatchObject({ exit: 0 });
    expect(asked).toEqual(new Array(2).fill(expect.stringMatching(`Type ${typed} to confirm: $`)));
  }
});

test("info shows the replica's settings, without secrets", async () => {
  const cli = await world().operatorCli();
  const { exit, stdout } = await cli("operator", "info");
  expect(exit).toBe(0);
  expect(stdout).toMatch(/^version +\d+\.\d+\.\d+$/m);
  expect(stdout).toMatch(/^DATABASE_URL +\(secret\)$/m);
  expect(stdout).toMatch(/^ONCEWARD_AUDIT_RETENTION +400d$/m);
  expect(await cli.json("operator", "info")).toMatchObject({ replicas: 1, degraded: [] });
});

test("an unknown tenant ends with exit code 4, and a similar one is named", async () => {
  const { cli, name } = await withTenant();
  for (const args of [["tenants", "show"], ["usage"], ["audit", "--tenant"]]) {
    expect(await cli("operator", ...args, `${name}x`)).toMatchObject(
      failed(4, `There is no tenant ${name}x. Did you mean ${name}?`),
    );
  }
});

test("an operator's key is created, listed and revoked, and the audit has each change", async () => {
  const cli = await world().operatorCli();
  const made = await cli("operator", "keys", "create", "--label", "on call", "--expires", "90d");
  expect(made).toMatchObject({ exit: 0, stdout: expect.stringMatching(/^ow_\S+\n$/) });
  const secret = made.stdout.trim();
  const id = parseApiKey(secret)?.id ?? "";
  expect(await cliFor(world().server, secret)("operator", "info")).toMatchObject({ exit: 0 });
  const { stdout: listed } = await cli("operator", "keys", "list");
  expect(listed).toMatch(new RegExp(`^KEY +LABEL +ENDS\\n${id} +on call +\\d`));
  expect(await cli("operator", "keys", "revoke", id)).toMatchObject({ exit: 2 });
  expect(await cli.json("operator", "keys", "revoke", id, "--yes")).toMatchObject({ apiKey: { id } });
  expect(await cliFor(world().server, secret)("operator", "info")).toMatchObject(
    failed(1, "CREDENTIAL_INVALID"),
  );
  expect(await cli("operator", "keys", "revoke", "0123456789abcdef", "--yes")).toMatchObject({ exit: 4 });
  expect((await cli("operator", "audit", "--action", "RevokeOperatorApiKey")).stdout).toContain(id);
});

test("the live replicas are listed with their load", async () => {
  const cli = await world().operatorCli();
  const { replica } = Object.fromEntries(
    (await cli("operator", "info")).stdout.split("\n").map((line) => line.split(/\s+/, 2)),
  );
  const { exit, stdout } = await cli("operator", "replicas", "--wide");
  expect({ exit, stdout }).toMatchObject({ exit: 0, stdout: expect.stringContaining("REPLICA") });
  const row = stdout.split("\n").find((line) => line.startsWith(replica));
  expect(row).toMatch(/ \d+ +[\d.]+ +\d+ +\d+\/\d+ +(-|-?\d+ ms) +no$/);
  expect(row).toContain(` ${hostname()} `);
  expect(await cli.json("operator", "replicas")).toMatchObject([{ id: replica, load: { poolSize: 12 } }]);
});
