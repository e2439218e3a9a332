import { expect, onTestFinished, test } from "vitest";
import { MAX_COUNTED } from "../../server/src/admin/records/count-records.ts";
import { copyRecord, endLeases } from "../support/calls/records.ts";
import { seconds } from "../support/calls/verbs.ts";
import { startTcpProxy } from "../support/network/tcp-proxy.ts";
import { cliFor, failed } from "../support/processes/cli.ts";
import { useCliWorld } from "../support/processes/cli-world.ts";
import { partsOf } from "../support/servers/tenants.ts";

/** Usage is stored at once, so that a test need not wait. */
const world = useCliWorld({ ONCEWARD_USAGE_FLUSH: "100ms" });
const HOLD = { on_lease_expiry: "HOLD" } as const;

test("whoami shows a credential's role and tenant, for every role", async () => {
  const { cli, tenant } = await world().tenantWithCli();
  expect((await cli("whoami")).stdout).toMatch(/^role +admin\ntenant +/m);
  expect(await cli.json("whoami")).toMatchObject({
    kind: "KIND_API_KEY",
    role: "ROLE_TENANT_ADMIN",
    tenant: tenant.name,
  });
  const operator = await world().operatorCli();
  expect((await operator("whoami")).stdout).toMatch(/^role +operator\ntenant +-\n/m);
});

test("a namespace with records and no policy is listed as undeclared", async () => {
  const { cli, caller } = await world().tenantWithCli();
  await cli("namespaces", "set", "charges", "--max-lease", "1h", "--yes");
  for (const namespace of ["charges", "chargse"]) await caller.claim({ namespace, key: "order-1" });
  expect(await cli("namespaces", "undeclared")).toEqual({
    exit: 0,
    stdout: "NAMESPACE\nchargse\n",
    stderr: "",
  });
  expect(await cli.json("namespaces", "undeclared")).toEqual(["chargse"]);
  expect(await cli.json("namespaces", "undeclared", "--prefix", "chargse")).toEqual(["chargse"]);
  expect(await cli.json("namespaces", "undeclared", "--prefix", "p")).toEqual([]);
  expect(await cli.json("namespaces", "list", "--prefix", "ch")).toMatchObject([{ name: "charges" }]);
});

test("records are counted by state, of one namespace or of each", async () => {
  const { cli, caller, tenant } = await world().tenantWithCli(HOLD);
  // One more than one statement of the service examines.
  await caller.claim({ namespace: "bulk", key: "order", lease: seconds(900) });
  await copyRecord(world().database, tenant, "order", { count: MAX_COUNTED, keySql: "'order-' || n" });
  for (const key of ["payout-1", "payout-2"]) await caller.claim({ namespace: "payouts", key });
  await endLeases(world().database, tenant, "payout-1");
  expect((await cli("records", "count", "payouts", "--wide")).stdout).toMatch(
    /^payouts +1 +0 +0 +0 +1 +\d{4}-/m,
  );
  expect(await cli.json("records", "count")).toMatchObject([
    { namespace: "bulk", inProgress: `${MAX_COUNTED + 1}`, ambiguous: "0" },
    { namespace: "payouts", inProgress: "1", ambiguous: "1" },
  ]);
  expect(await cli("records", "count", "--limit", "1")).toMatchObject({
    stderr: "There are more than 1; --limit sets how many are shown.\n",
  });
});

test("records are filtered by owner, fingerprint and the end of their lease", async () => {
  const { cli, caller, tenant } = await world().tenantWithCli(HOLD);
  const fingerprint = new Uint8Array(32).fill(7);
  await caller.claim({ namespace: "payouts", key: "payout-1", owner: "worker-1" });
  await caller.claim({ namespace: "payouts", key: "payout-2", owner: "worker-2", fingerprint });
  await endLeases(world().database, tenant, "payout-1");
  const keys = async (...filter: string[]) =>
    ((await cli.json("records", "list", ...filter)) as { key: string }[]).map(({ key }) => key);
  expect(await keys("--owner", "worker-2")).toEqual(["payout-2"]);
  expect(await keys("--fingerprint", "07".repeat(32))).toEqual(["payout-2"]);
  const soon = new Date(Date.now() + 1000).toISOString();
  expect(await keys("--lease-expired-before", soon)).toEqual(["payout-1"]);
  expect(await keys("--state", "ambiguous", "--lease-expired-before", "1h")).toEqual([]);
  expect(await cli("records", "list", "--fingerprint", "07")).toMatchObject({ exit: 2 });
});

test("every printed spelling of a state can be typed", async () => {
  const { cli, caller } = await world().tenantWithCli();
  await caller.claim({ namespace: "charges", key: "order-1" });
  const { stdout } = await cli("records", "list", "--columns", "key,state");
  const [, printed = ""] = /order-1 +(\S+)/.exec(stdout) ?? [];
  expect(printed).toBe("in_progress");
  const [{ state }] = (await cli.json("records", "list")) as [{ state: string }];
  for (const spelling of [printed, state, "in-progress", "In_Progress"]) {
    expect(await cli.json("records", "list", "--state", spelling)).toHaveLength(1);
  }
});

test("audit events are filtered by actor, target and outcome", async () => {
  const { cli, adminKey } = await world().tenantWithCli();
  await cli("namespaces", "set", "charges", "--max-lease", "1h", "--yes");
  await cli("namespaces", "set", "payouts", "--max-lease", "1h", "--yes");
  const list = async (...filter: string[]) =>
    ((await cli.json("audit", "list", ...filter)) as { target: string }[]).map(({ target }) => target);
  expect(await list("--target", "namespace charges")).toEqual(["namespace charges"]);
  expect(await list("--actor", partsOf(adminKey).id)).toHaveLength(2);
  expect(await list("--actor", "0000000000000000")).toEqual([]);
  expect(await list("--outcome", "DONE")).toHaveLength(2);
  expect(await list("--outcome", "denied")).toEqual([]);
  expect(await list("--without-sign-ins")).toHaveLength(2);
});

test("keys list shows when a key was last used", async () => {
  const { cli } = await world().tenantWithCli();
  await expect
    .poll(async () => {
      const [own] = (await cli.json("keys", "list")) as [{ lastUsedAt?: string }];
      return own.lastUsedAt !== undefined && (await cli("keys", "list")).stdout.includes("LAST USED");
    })
    .toBe(true);
});

test("operator usage shows a tenant's records beside its quota", async () => {
  const { caller, tenant } = await world().tenantWithCli();
  const operator = await world().operatorCli();
  const limits = ["--live-records", "1000", "--stored-bytes", "5GiB", "--yes"];
  await operator("operator tenants limits", tenant.name, ...limits);
  await caller.claim({ namespace: "charges", key: "order-1" });
  const row = async () => (await operator("operator", "usage", tenant.name, "--wide")).stdout.split("\n");
  await expect
    .poll(row)
    .toContainEqual(
      expect.stringMatching(
        new RegExp(`^${tenant.name} +\\S+ +\\S+ +1 +0 +\\S+ +1 of 1000 +\\d+ of 5368709120 `),
      ),
    );
});

/** A process on a busy machine loads the program for seconds. */
const WAIT = { timeout: 40_000 };

async function withAmbiguous() {
  const tenant = await world().tenantWithCli(HOLD);
  for (const namespace of ["charges", "payouts"])
    await tenant.caller.claim({ namespace, key: `${namespace}-1` });
  await endLeases(world().database, tenant.tenant, "payouts-1");
  return tenant;
}

test("watch --once prints usage, ambiguous records and unfinished jobs of its scope", async () => {
  const { cli } = await withAmbiguous();
  const changed = await cli("namespaces set payouts --key-retention 9d --apply-to-existing --yes");
  expect(changed).toMatchObject({ exit: 0 });
  const look = (...args: string[]) => cli.json("watch", "--once", ...args);
  await expect
    .poll(() => look())
    .toMatchObject({ namespace: "", hour: { claims: "2", granted: "2", fenced: "0" } });
  expect(await look()).toMatchObject({
    ambiguousRecords: 1,
    hasMoreAmbiguous: false,
    ambiguousSince: expect.stringMatching(/Z$/),
    jobs: [{ kind: "KIND_RESTAMP", namespace: "payouts" }],
  });
  expect(await look("charges")).toMatchObject({ hour: { claims: "1" }, ambiguousRecords: 0, jobs: [] });
  const { stdout } = await cli("watch", "--once", "payouts");
  expect(stdout).toMatch(
    /this hour 1 claims: 1 granted, .*; ambiguous records 1 since \d{4}-.*Z\n {2}job \d+ waiting: /,
  );
});

test("watch looks again until Ctrl-C, also while the service is unreachable", async () => {
  const { adminKey } = await withAmbiguous();
  const proxy = await startTcpProxy(world().server.grpcPort);
  onTestFinished(() => proxy.close());
  const watch = cliFor({ grpcPort: proxy.port }, adminKey).start("watch", "--interval", "1s", "--json");
  const lines = () => watch.printed.stdout.split("\n").filter((line) => JSON.parse(line || "null"));
  await expect.poll(() => lines().length, WAIT).toBeGreaterThan(1);
  proxy.setMode("refuse");
  await expect.poll(() => watch.printed.stderr, WAIT).toContain('"exitCode":3');
  const before = lines().length;
  proxy.setMode("forward");
  await expect.poll(() => lines().length, WAIT).toBeGreaterThan(before);
  watch.interrupt();
  expect(await watch.ended).toBe("SIGINT");
});

test("watch ends if its only look fails, or if the key is refused", async () => {
  expect(await cliFor({ grpcPort: 1 }, "ow_any")("watch", "--once")).toMatchObject({ exit: 3, stdout: "" });
  const wrong = cliFor(world().server, "ow_0000000000000000_wrong");
  expect(await wrong("watch")).toMatchObject(failed(1, "CREDENTIAL_INVALID"));
  expect(await wrong("watch", "--interval", "10ms")).toMatchObject(failed(2, "1s to 1h"));
});
