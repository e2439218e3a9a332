import { expect, test } from "vitest";
import { errorOf } from "../support/calls/errors.ts";
import { seconds } from "../support/calls/verbs.ts";
import { runRecordJobs } from "../support/database/jobs.ts";
import { failed } from "../support/processes/cli.ts";
import { useCliWorld } from "../support/processes/cli-world.ts";

const world = useCliWorld({ ONCEWARD_USAGE_FLUSH: "100ms" });
const SET = ["retention", "set", "charges", "--key", "7d", "--result", "24h"] as const;

async function withRecords(count: number) {
  const tenant = await world().tenantWithCli();
  for (let index = 0; index < count; index++) {
    await tenant.caller.claim({ namespace: "charges", key: `order-${index}` });
  }
  const namespace = async () => (await tenant.admin.getNamespace({ name: "charges" })).namespace;
  return { ...tenant, namespace };
}

test("without a terminal and without --yes a change is previewed, refused, and not made", async () => {
  const { cli, namespace } = await withRecords(3);
  const { exit, stdout, stderr } = await cli(...SET);
  expect({ exit, stdout }).toEqual({ exit: 2, stdout: "" });
  expect(stderr).toMatch(/key retention +72h +→ 7d\n/);
  expect(stderr).toMatch(/result retention +72h +→ 24h\n/);
  expect(stderr).toMatch(/failure retention +72h +→ 24h +not set here\n/);
  expect(stderr).toContain("with --apply-to-existing: 3 changed, 0 of them forgotten at once.");
  expect(stderr).toMatch(/give --yes\.\n$/);
  expect(await errorOf(namespace())).toMatchObject({ reason: "NAMESPACE_NOT_FOUND" });
});

test("--dry-run prints the preview as the result, and changes nothing", async () => {
  const { cli, namespace } = await withRecords(2);
  const { exit, stdout } = await cli(...SET, "--dry-run");
  expect({ exit, stdout }).toMatchObject({ exit: 0, stdout: expect.stringContaining("→ 7d") });
  expect(await cli.json(...SET, "--dry-run")).toMatchObject({
    namespace: { policy: { keyRetention: "604800s", resultRetention: "86400s" } },
    effect: { recordsChanged: "2", recordsForgotten: "0" },
  });
  expect(await errorOf(namespace())).toMatchObject({ reason: "NAMESPACE_NOT_FOUND" });
});

test("only the given fields are set; inherit unsets them again", async () => {
  const { cli, namespace } = await withRecords(0);
  expect(await cli(...SET, "--yes")).toMatchObject({ exit: 0 });
  expect((await namespace())?.policy).toMatchObject({
    keyRetention: seconds(604_800),
    resultRetention: seconds(86_400),
  });
  expect(await cli("retention", "set", "charges", "--result", "inherit", "--yes")).toMatchObject({ exit: 0 });
  expect((await namespace())?.policy).toMatchObject({ keyRetention: seconds(604_800) });
  expect((await namespace())?.policy?.resultRetention).toBeUndefined();
});

test("every field of a policy can be set, of a namespace and of the tenant", async () => {
  const { cli, namespace, admin } = await withRecords(0);
  const fields = [
    "--key-retention 10d --result-retention 5d --failure-retention 1h --default-lease 10s --max-lease 1m",
    "--on-lease-expiry hold --max-result-bytes 1000 --provider-link https://pay.example/{key}",
    "--late-keys require-time --require-fingerprint true",
  ].flatMap((line) => line.split(" "));
  const policy = {
    keyRetention: seconds(864_000),
    resultRetention: seconds(432_000),
    failureRetention: seconds(3600),
    defaultLease: seconds(10),
    maxLease: seconds(60),
    onLeaseExpiry: 2,
    lateKeys: 3,
    providerLink: "https://pay.example/{key}",
    maxResultBytes: 1000,
    requireFingerprint: true,
  };
  expect(await cli("namespaces", "set", "charges", ...fields, "--yes")).toMatchObject({ exit: 0 });
  expect((await namespace())?.policy).toMatchObject(policy);
  expect(await cli("tenant", "set", ...fields, "--yes")).toMatchObject({ exit: 0 });
  expect((await admin.getTenant({})).tenant?.policy).toMatchObject(policy);
});

test("a change of late_keys is previewed with the week's claims that it would have refused", async () => {
  const { cli } = await withRecords(2);
  const set = ["namespaces", "set", "charges", "--late-keys", "refuse", "--dry-run"];
  // Usage is stored now and then.
  await expect.poll(async () => (await cli(...set)).stdout).toMatch(/claims of the last 7d +2\n/);
  const { stdout } = await cli(...set);
  expect(stdout).toMatch(/late keys +run +→ refuse/);
  expect(stdout).toMatch(/time of the key unknown +2 +require-time refuses these\n$/);
});

test("at a terminal the answer decides", async () => {
  const { cli, namespace } = await withRecords(0);
  const asked: string[] = [];
  const answer = (text: string) => (question: string) => {
    asked.push(question);
    return Promise.resolve(text);
  };
  expect(await cli.answering(answer(""), ...SET)).toMatchObject({ exit: 1, stdout: "" });
  expect(await cli.answering(answer("yes"), ...SET)).toMatchObject({ exit: 1, stdout: "" });
  expect(await errorOf(namespace())).toMatchObject({ reason: "NAMESPACE_NOT_FOUND" });
  expect(await cli.answering(answer("charges"), ...SET)).toMatchObject({ exit: 0 });
  expect((await namespace())?.policy).toMatchObject({ keyRetention: seconds(604_800) });
  // The result retention becomes shorter.
  expect(asked.splice(0)).toEqual(
    new Array(3).fill("Change the policy of namespace charges? Type charges to confirm: "),
  );
  const hold = ["namespaces", "set", "charges", "--on-lease-expiry", "hold"];
  const forgotten = "An ambiguous record is forgotten after";
  expect((await cli(...hold, "--dry-run")).stdout).toContain(forgotten);
  expect((await cli(...hold, "--late-keys", "refuse", "--dry-run")).stdout).not.toContain(forgotten);
  expect(await cli.answering(answer("y"), ...hold)).toMatchObject({ exit: 0 });
  expect(asked).toEqual(["Change the policy of namespace charges? [y/N] "]);
});

test("a longer retention loses nothing, and is set without a question", async () => {
  const { cli, namespace } = await withRecords(1);
  expect(await cli("retention", "set", "charges", "--key", "7d", "--apply-to-existing")).toMatchObject({
    exit: 0,
  });
  expect((await namespace())?.policy).toMatchObject({ keyRetention: seconds(604_800) });
});

test("a policy that was changed since the preview is not overwritten", async () => {
  const { cli, admin, namespace } = await withRecords(0);
  const setLease = (lease: number) =>
    admin.updateNamespace({
      namespace: { name: "charges", policy: { maxLease: seconds(lease) } },
      allowMissing: true,
    });
  await setLease(60);
  const { exit, stderr } = await cli.answering(
    async () => {
      await setLease(70);
      return "charges";
    },
    ...SET,
  );
  expect({ exit, stderr }).toEqual({ exit: 1, stderr: expect.stringContaining("onceward: ETAG_MISMATCH: ") });
  expect((await namespace())?.policy).toMatchObject({ maxLease: seconds(70) });
  expect((await namespace())?.policy?.keyRetention).toBeUndefined();
});

test("existing records are changed in the background, and the job is watched until its end", async () => {
  const { cli, caller } = await withRecords(4);
  const reply = await cli.json(...SET, "--apply-to-existing", "--yes");
  expect(reply).toMatchObject({ job: { state: "STATE_WAITING", namespace: "charges" } });
  const { id } = (reply as { job: { id: string } }).job;
  expect((await cli("jobs", "list")).stdout).toMatch(
    new RegExp(`^${id} +restamp +charges +waiting +0 `, "m"),
  );
  const watching = cli("jobs", "show", id, "--watch");
  await runRecordJobs(world().database);
  const { exit, stdout } = await watching;
  expect({ exit, stdout }).toMatchObject({ exit: 0, stdout: expect.stringMatching(/^state +done$/m) });
  expect(stdout).toMatch(/^changed +4$/m);
  const { record } = await caller.lookup({ namespace: "charges", key: "order-0" });
  expect(Number(record?.expiresAt?.seconds) - Number(record?.claimedAt?.seconds)).toBe(604_800);
});

test("a namespace with live records is deleted only with --force", async () => {
  const { cli } = await withRecords(1);
  await cli(...SET, "--yes");
  expect((await cli("namespaces", "list", "--wide")).stdout).toMatch(/^charges +7d +24h +reclaim /m);
  expect(await cli("namespaces", "delete", "charges", "--yes")).toMatchObject(
    failed(1, "NAMESPACE_NOT_EMPTY"),
  );
  expect(await cli("namespaces", "delete", "charges", "--force", "--yes")).toMatchObject({ exit: 0 });
  expect(await cli("namespaces", "show", "charges")).toMatchObject({ exit: 4 });
});

test("a namespace and --tenant exclude each other, and one of them is needed", async () => {
  const { cli } = await withRecords(0);
  for (const where of [[], ["charges", "--tenant"]]) {
    expect(await cli("retention", "set", ...where, "--key", "7d", "--yes")).toMatchObject({ exit: 2 });
  }
  expect(await cli("retention", "set", "charges", "--yes")).toMatchObject({ exit: 2 });
  expect(await cli("retention", "set", "--tenant", "--key", "7d", "--yes")).toMatchObject({ exit: 0 });
});
