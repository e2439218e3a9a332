import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { endLeases } from "../helpers/calls/records.ts";
import { cliFor } from "../helpers/processes/cli.ts";
import { useCliWorld } from "../helpers/processes/cli-world.ts";

const world = useCliWorld();
const RESOLVE = ["records", "resolve", "payouts", "payout-1"] as const;
const WHY = ["--reason", "found out", "--yes"] as const;

/** A tenant with an ambiguous payout, and one in progress. */
async function withAmbiguous() {
  const tenant = await world().tenantWithCli({ on_lease_expiry: "HOLD" });
  for (const key of ["payout-1", "payout-2"]) {
    await tenant.caller.claim({ namespace: "payouts", key, owner: "worker-3" });
  }
  await endLeases(world().database, tenant.tenant, "payout-1");
  const claim = async () =>
    (await tenant.caller.claim({ namespace: "payouts", key: "payout-1", owner: "worker-4" })).outcome;
  return { ...tenant, claim };
}

test("the queue of ambiguous records is one filter", async () => {
  const { cli } = await withAmbiguous();
  const { exit, stdout } = await cli("records", "list", "--state", "ambiguous");
  expect(exit).toBe(0);
  expect(stdout.trim().split("\n")).toEqual([
    expect.stringMatching(/^NAMESPACE +KEY +STATE /),
    expect.stringMatching(/^payouts +payout-1 +ambiguous +1 +worker-3 /),
  ]);
});

test("filters are passed on, and standard error says that a list was cut short", async () => {
  const { cli } = await withAmbiguous();
  const keys = async (...filter: string[]) =>
    ((await cli.json("records", "list", ...filter)) as { key: string }[]).map(({ key }) => key);
  expect(await keys()).toEqual(["payout-1", "payout-2"]);
  expect(await keys("--namespace", "payouts", "--prefix", "payout-2")).toEqual(["payout-2"]);
  expect(await keys("--namespace", "charges")).toEqual([]);
  expect(await keys("--claimed-before", "1h")).toEqual([]);
  expect(await keys("--claimed-after", "1h")).toEqual(["payout-1", "payout-2"]);
  expect(await cli("records", "list", "--limit", "1")).toMatchObject({
    exit: 0,
    stderr: "There are more than 1; --limit sets how many are shown.\n",
  });
});

test("a record that is completed by hand is replayed byte for byte", async () => {
  const { cli, claim } = await withAmbiguous();
  expect(await cli(...RESOLVE, "--complete", '{ "id":"po_1" }', ...WHY)).toMatchObject({ exit: 0 });
  const outcome = await claim();
  if (outcome.case !== "completed") throw new Error(`answered ${outcome.case}`);
  expect(outcome.value.result).toMatchObject({ kind: 1, contentType: "application/json" });
  expect(Buffer.from(outcome.value.result?.payload ?? []).toString()).toBe('{ "id":"po_1" }');
  expect((await cli("records", "show", "payouts", "payout-1")).stdout).toContain(
    'success { "id":"po_1" } (application/json)',
  );
});

test("a result is read from a file, and may be a failure", async () => {
  const { cli, claim } = await withAmbiguous();
  const dir = await mkdtemp(join(tmpdir(), "ow-cli-"));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  const file = join(dir, "failure.json");
  await writeFile(file, '{"message":"account closed"}\n');
  expect(await cli(...RESOLVE, "--failure", `@${file}`, ...WHY)).toMatchObject({ exit: 0 });
  expect(await claim()).toMatchObject({ case: "completed", value: { result: { kind: 2 } } });
});

test.each([
  ["--release", 2],
  ["--forget", 1],
])("after %s the next claim gets the key, as attempt %i", async (how, attempt) => {
  const { cli, claim } = await withAmbiguous();
  expect(await cli(...RESOLVE, how, ...WHY)).toMatchObject({ exit: 0 });
  expect(await claim()).toMatchObject({ case: "claimed", value: { attempt } });
});

test("a resolution needs exactly one outcome, a reason, and confirmation", async () => {
  const { cli, claim } = await withAmbiguous();
  for (const wrong of [
    [...WHY],
    ["--release", "--forget", ...WHY],
    ["--complete", "po_1", ...WHY],
    ["--complete", "@/nonexistent", ...WHY],
    ["--release", "--yes"],
    ["--release", "--reason", "found out"],
  ]) {
    expect({ wrong, ...(await cli(...RESOLVE, ...wrong)) }).toMatchObject({ wrong, exit: 2, stdout: "" });
  }
  expect(await claim()).toMatchObject({ case: "ambiguous" });
});

test("a record that was claimed again since is not resolved", async () => {
  const { cli } = await withAmbiguous();
  expect(await cli(...RESOLVE, "--release", "--fencing-token", "999999999", ...WHY)).toMatchObject({
    exit: 1,
    stderr: expect.stringContaining("CLAIM_SUPERSEDED"),
  });
});

test("lookup uses a caller's key, and its exit code says that a key is unknown", async () => {
  const { tenant } = await withAmbiguous();
  const cli = cliFor(world().server, tenant.apiKey);
  expect(await cli.json("lookup", "payouts", "payout-1")).toMatchObject({
    state: "STATE_AMBIGUOUS",
    attempt: 1,
  });
  expect(await cli("lookup", "payouts", "payout-9")).toEqual({
    exit: 4,
    stdout: "",
    stderr: "onceward: The key is unknown, or forgotten.\n",
  });
});
