import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ageRecords, endLeases } from "../support/calls/records.ts";
import { seconds } from "../support/calls/verbs.ts";
import { newDir } from "../support/new-dir.ts";
import { cliFor, cliWith, failed } from "../support/processes/cli.ts";
import { useCliWorld } from "../support/processes/cli-world.ts";

/** What happened to a key is stored at once, so that a test need not wait. */
const world = useCliWorld({ ONCEWARD_USAGE_FLUSH: "100ms" });
const RESOLVE = ["records", "resolve", "payouts", "payout-1"] as const;
const WHY = ["--reason", "found out", "--yes"] as const;

/** A tenant with an ambiguous payout and one in progress. */
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
  const { cli, tenant } = await withAmbiguous();
  const { exit, stdout } = await cli("records", "list", "--state", "ambiguous");
  expect(exit).toBe(0);
  expect(stdout.trim().split("\n")).toEqual([
    expect.stringMatching(/^NAMESPACE +STATE +OWNER +CLAIMED +KEY$/),
    expect.stringMatching(/^payouts +ambiguous +worker-3 .* payout-1/),
  ]);
  // Older than payout-1, and after it by its key.
  await ageRecords(world().database, tenant, 60, "payout-2");
  const oldest = await cli.json("records", "list", "--state", "ambiguous", "--oldest-first");
  expect(oldest).toMatchObject([{ key: "payout-2" }, { key: "payout-1" }]);
  expect(await cli("records", "list", "--oldest-first")).toMatchObject(failed(1, "STATE_AMBIGUOUS"));
});

test("a lapsed record is shown as lapsed everywhere, with what happens next", async () => {
  const { cli, caller, tenant } = await world().tenantWithCli();
  for (const key of ["payout-1", "payout-2"])
    await caller.claim({ namespace: "payouts", key, lease: seconds(300) });
  await endLeases(world().database, tenant, "payout-1");
  const asCaller = cliFor(world().server, tenant.apiKey);
  for (const show of [
    await cli("records", "show", "payouts", "payout-1"),
    await asCaller("lookup", "payouts", "payout-1"),
  ]) {
    expect(show.stdout).toMatch(
      /^state +lapsed\nmeaning +The lease ended without an answer\. The next claim takes the key over\.$/m,
    );
    expect(show.stdout).not.toMatch(/\bheld\b/);
  }
  const list = async (...filter: string[]) =>
    [
      ...(await cli("records", "list", "--columns", "key,state", "--state", ...filter)).stdout.matchAll(
        /(payout-\d) +(\w+)/g,
      ),
    ].map(([, key, state]) => `${key} ${state}`);
  expect(await list("in_progress")).toEqual(["payout-1 lapsed", "payout-2 in_progress"]);
  expect(await list("lapsed")).toEqual(["payout-1 lapsed"]);
  expect(await list("lapsed", "--lease-expired-before", "1d")).toEqual([]);
  expect(await list("lapsed", "--lease-expired-before", "2100-01-01T00:00Z")).toEqual(["payout-1 lapsed"]);
  // Programs read the contract's states.
  expect(await cli.json("records", "list", "--state", "lapsed")).toMatchObject([
    { state: "STATE_IN_PROGRESS" },
  ]);
  expect((await cli("records", "show", "payouts", "payout-2")).stdout).toMatch(
    /^state +in_progress\nmeaning +A caller holds/m,
  );
});

test("filters are passed on, and standard error says that a list was cut short", async () => {
  const { cli } = await withAmbiguous();
  const keys = async (...filter: string[]) =>
    ((await cli.json("records", "list", ...filter)) as { key: string }[]).map(({ key }) => key);
  expect(await keys()).toEqual(["payout-1", "payout-2"]);
  expect(await keys("--namespace", "payouts", "--prefix", "payout-2")).toEqual(["payout-2"]);
  await cli("namespaces", "set", "charges", "--max-lease", "1h", "--yes");
  expect(await keys("--namespace", "charges")).toEqual([]);
  const misspelt = {
    exit: 4,
    stdout: "",
    stderr: "onceward: There is no namespace payuots. Did you mean payouts?\n",
  };
  for (const args of [
    ["records", "list", "-n"],
    ["records", "count"],
    ["usage", "show", "-n"],
    ["usage", "now"],
    ["watch"],
  ])
    expect(await cli(...args, "payuots")).toEqual(misspelt);
  expect(await cli("records", "show", "payuots", "payout-1")).toEqual(misspelt);
  expect(await cli("records", "show", "payuots", "payout-1", "--json")).toMatchObject(
    failed(4, /record payuots\/[0-9a-f]{32}/),
  );
  // An administrator of one namespace may not list them.
  const { secret } = (await cli.json("keys", "create", "--role", "admin", "--namespace", "payouts")) as {
    secret: string;
  };
  const restricted = cliFor(world().server, secret);
  expect(await restricted("records", "list", "-n", "payouts", "--prefix", "x")).toMatchObject({ exit: 0 });
  expect(await keys("--key", "payout-2")).toEqual(["payout-2"]);
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
  const show = async (...options: string[]) =>
    (await cli("records", "show", "payouts", "payout-1", ...options)).stdout;
  expect(await show()).toContain("success 15 bytes, shown with --result (application/json)");
  expect(await show("--result")).toContain('success { "id":"po_1" } (application/json)');
});

test("the history of a key has its duplicates by outcome, API key and request", async () => {
  const { cli, caller, tenant } = await withAmbiguous();
  const history = async (key = "payout-2") =>
    (await cli("records", "history", "payouts", key, "--wide")).stdout;
  expect(await history()).toContain("No duplicates and no refusals yet.");
  const headers = { "x-request-id": "the-duplicate" };
  await caller.claim({ namespace: "payouts", key: "payout-2" }, { headers });
  await expect
    .poll(() => history(), { interval: 50 })
    .toMatch(/^ {2}1 came while another caller held the key$/m);
  const keyId = tenant.apiKey.split("_")[1] ?? "";
  expect(await history()).toMatch(new RegExp(`in_progress +${keyId} +the-duplicate$`, "m"));
  expect(await cli.json("records", "history", "payouts", "payout-2")).toMatchObject({ inProgress: "1" });
});

test("a result is read from a file, and may be a failure", async () => {
  const { cli, claim } = await withAmbiguous();
  const dir = await newDir();
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
  expect(await cli(...RESOLVE, "--release", "--fencing-token", "999999999", ...WHY)).toMatchObject(
    failed(1, "CLAIM_SUPERSEDED"),
  );
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
    stderr:
      "onceward: The key is unknown, or forgotten. HTTP guards store METHOD:route:caller:KEY; an admin lists such keys with onceward records list --namespace payouts --prefix POST:\n",
  });
});

test("an unknown key that has the form of a guard's is not explained", async () => {
  const { tenant } = await world().tenantWithCli();
  expect((await cliFor(world().server, tenant.apiKey)("lookup", "payouts", "POST:/a:b:c")).stderr).toBe(
    "onceward: The key is unknown, or forgotten.\n",
  );
});

test("a record is shown with its attempts", async () => {
  const { cli } = await withAmbiguous();
  await cli(...RESOLVE, "--release", ...WHY);
  const { stdout } = await cli("records", "show", "payouts", "payout-1", "--wide");
  expect(stdout).toMatch(
    /ATTEMPT +OWNER +CLAIMED +ENDED +HOW +CHECKPOINT +JOB +REASON\n1 +worker-3 .* resolved +- +- +found out\n/,
  );
  expect(await cli.json("records", "show", "payouts", "payout-2")).toMatchObject({
    record: { key: "payout-2" },
    attempts: [{ number: 1, owner: "worker-3", ending: "ENDING_HELD" }],
  });
});

test("all matching ambiguous records are counted, and resolved if as many as expected", async () => {
  const { cli, claim } = await withAmbiguous();
  const resolveAll = [...["records", "resolve", "payouts", "--all-matching", "--release"], ...WHY];
  expect(await cli(...resolveAll, "--dry-run", "--owner", "worker-3")).toMatchObject({
    exit: 0,
    stdout: "1 ambiguous records match in payouts. Nothing was changed.\n",
  });
  expect(await cli(...resolveAll, "--dry-run", "--owner", "worker-9")).toMatchObject({
    stdout: "0 ambiguous records match in payouts. Nothing was changed.\n",
  });
  expect(await cli(...resolveAll, "--expect", "2")).toMatchObject(
    failed(1, "1 records match, and expected_count is 2"),
  );
  expect(await claim()).toMatchObject({ case: "ambiguous" });
  const { exit, stdout } = await cli(...resolveAll, "--expect", "1");
  expect(exit).toBe(0);
  const [, job = ""] = /^Job (\d+) resolves 1 records\./.exec(stdout) ?? [];
  const watched = await cli("jobs", "show", job, "--watch");
  const list = ["records", "list", "--namespace", "payouts", "--job", job] as const;
  expect(watched.stdout).toMatch(
    new RegExp(`kind +resolve\n(.*\n)*state +done\n(.*\n)*changed records +onceward ${list.join(" ")}\n`),
  );
  expect(await cli.json(...list)).toMatchObject([{ key: "payout-1", state: "STATE_RELEASED" }]);
  expect(await claim()).toMatchObject({ case: "claimed" });
  expect(await cli("jobs", "cancel", job, "--yes")).toMatchObject({
    exit: 0,
    stdout: `Job ${job} was already done; it changed 1 records.\n`,
  });
});

test("a file of answers completes what happened and releases or forgets the rest", async () => {
  const { cli, caller, tenant } = await world().tenantWithCli({ on_lease_expiry: "HOLD" });
  const keys = ["a,b", 'c"d', "po-3", "po-4"];
  for (const key of keys) await caller.claim({ namespace: "payouts", key });
  await endLeases(world().database, tenant);
  const dir = await newDir();
  const file = join(dir, "payouts.csv");
  const list = ["records", "list", "--state", "ambiguous", "--csv", file] as const;
  expect(await cli("records", "list", "--csv", file)).toMatchObject({ exit: 2 });
  expect(await cli(...list)).toMatchObject({ exit: 0 });
  expect(await cli(...list)).toMatchObject(failed(2, "EEXIST"));
  // The bank's answers: two yes, one no, and one is still open.
  const exported = await readFile(file, "utf8");
  const answers = ["yes,", 'yes,"{""id"": 2}"', "no,", ","].values();
  await writeFile(
    file,
    exported.replaceAll(",,,payouts", () => `,${answers.next().value},payouts`),
  );
  const resolve = ["records", "resolve", "payouts", "--answers", file, ...WHY] as const;
  const preview =
    /^happened: complete +2\ndid not happen: release +1\nskipped: no answer +1\nNothing was changed\.\n$/;
  expect((await cli(...resolve, "--dry-run")).stdout).toMatch(preview);
  for (const [wrong, exit] of [
    [[], 2],
    [["--release"], 2],
    [["--all-matching", "--release"], 2],
    [["--complete", "{}", "--expect", "4"], 1],
  ] as const)
    expect({ wrong, ...(await cli(...resolve, ...wrong)) }).toMatchObject({ wrong, exit, stdout: "" });
  expect(await cli(...resolve, "--complete", '{"paid":true}', "--expect", "3")).toMatchObject({
    exit: 0,
    stdout: "Resolved 3 records; every replica follows within 10 s.\n",
  });
  const states = async () =>
    ((await cli.json("records", "list")) as { key: string; state: string }[]).map(({ state }) => state);
  expect((await states()).toSorted()).toEqual([
    "STATE_AMBIGUOUS",
    "STATE_COMPLETED",
    "STATE_COMPLETED",
    "STATE_RELEASED",
  ]);
  const shown = await Promise.all(
    keys.map(async (key) => (await cli("records", "show", "payouts", key, "--result")).stdout),
  );
  for (const result of ['{"paid":true}', '{"id": 2}']) {
    expect(shown.filter((text) => text.includes(result))).toHaveLength(1);
  }
  expect((await cli.json(...resolve)) as object).toMatchObject({ complete: 0, release: 0, notAmbiguous: 3 });
  await writeFile(file, "key,happened?\npo-4,no\n");
  expect(await cli(...resolve, "--release", "--forget")).toMatchObject({ exit: 2 });
  expect((await cli.json(...resolve, "--forget")) as object).toMatchObject({ forget: 1, resolved: 1 });
  expect(await states()).not.toContain("STATE_AMBIGUOUS");
  expect(await states()).toHaveLength(3);
});

test("a file of answers that can't be read is refused whole, by line and column, and has a bound", async () => {
  const { tenant } = await world().tenantWithCli();
  const env = {
    ONCEWARD_ADDRESS: `http://127.0.0.1:${world().server.grpcPort}`,
    ONCEWARD_API_KEY: tenant.apiKey,
  };
  const resolve = (input: string) => cliWith(env, input)("records", "resolve", "--answers", "-", ...WHY);
  expect(await resolve("key,happened?\npo-1,yes\npo-2,perhaps\n")).toMatchObject({
    exit: 2,
    stderr:
      'onceward: Standard input can\'t be used; nothing was changed.\nLine 3, column "happened?": "perhaps" is not yes or no.\n',
  });
  expect(await resolve("")).toMatchObject({ exit: 2, stderr: "onceward: Standard input has no answers.\n" });
  const dir = await newDir();
  const file = join(dir, "large.csv");
  await writeFile(file, "x".repeat(3 * 1_024 * 1_024 + 1));
  expect(await cliWith(env)("records", "resolve", "--answers", file, ...WHY)).toMatchObject(
    failed(2, "more than 3145728 bytes"),
  );
});

test("options of one record and of many are not mixed", async () => {
  const { cli } = await withAmbiguous();
  for (const wrong of [
    [...RESOLVE, "--all-matching", "--release", ...WHY],
    ["records", "resolve", "--all-matching", "--fencing-token", "1", "--release", ...WHY],
    ["records", "resolve", "payouts", "--release", ...WHY],
    [...RESOLVE, "--dry-run", "--release", ...WHY],
    [...RESOLVE, "--expect", "1", "--release", ...WHY],
  ]) {
    expect({ wrong, ...(await cli(...wrong)) }).toMatchObject({ wrong, exit: 2, stdout: "" });
  }
});

test("a job that waits is cancelled", async () => {
  const { cli } = await withAmbiguous();
  await cli("retention", "set", "payouts", "--key", "7d", "--apply-to-existing", "--yes");
  const [{ id }] = (await cli.json("jobs", "list")) as [{ id: string }];
  expect(await cli("jobs", "cancel", id)).toMatchObject({ exit: 2 });
  expect(await cli("jobs", "cancel", id, "--yes")).toMatchObject({
    exit: 0,
    stdout: `Job ${id} is cancelled; it changed 0 records.\n`,
  });
  expect((await cli("jobs", "show", id, "--watch")).stdout).toMatch(/state +cancelled\n/);
  expect(await cli("jobs", "cancel", "999999", "--yes")).toMatchObject({ exit: 4 });
});
