import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  createTenantAdmin,
  KeyDefect,
  type RetentionCandidate,
  type TenantAdmin,
} from "@onceward/client/admin";
import { expect, onTestFinished, test } from "vitest";
import { CHILD_ENVIRONMENT } from "../../support/processes/child-environment.ts";
import { createWorkplace, type Workplace } from "../../support/processes/command.ts";
import { startDev } from "../../support/processes/dev.ts";
import { randomFor } from "../../support/seed.ts";
import { createPlanner } from "./plan.ts";
import type { PlantedNamespace } from "./planted.ts";
import type { Planted } from "./run.ts";

const run = promisify(execFile);
const MAIN = fileURLToPath(new URL("main.ts", import.meta.url));
const DAY_S = 86_400;
/** A run takes less than half a minute on an idle machine. */
const LIMIT_MS = 240_000;
const EXAMPLE_NAMESPACE = "first-steps";
/** Enough days for a Monday with redriven days before it, whose repeats are also seen to stop within a week. */
const SHORT_RUN = ["--seed", "11", "--days", "16", "--operations", "400", "--live", "3"];

function plantTraffic({ dir, temporaryDir }: Workplace, args: readonly string[]) {
  return run(process.execPath, ["--conditions=@onceward/source", MAIN, ...args], {
    cwd: dir,
    env: { ...CHILD_ENVIRONMENT, TMPDIR: temporaryDir },
    timeout: LIMIT_MS,
  });
}

async function connectAdmin({ address, adminKeyFile }: Planted): Promise<TenantAdmin> {
  const admin = createTenantAdmin({ address, apiKey: (await readFile(adminKeyFile, "utf8")).trim() });
  onTestFinished(() => admin.close());
  return admin;
}

/** Returns the planted repeats of the last seconds that come later than a retention. */
function plantedLate({ repeats, keyRetentionS }: PlantedNamespace, retentionS: number, lastS: number) {
  const counts = repeats
    .filter(({ agoS }) => agoS <= lastS)
    .filter(({ late, latenessS }) => (late && retentionS <= keyRetentionS) || latenessS > retentionS);
  return counts.reduce((sum, each) => sum + each.repeats, 0);
}

/** The counts have hours, and the run took some time: repeats this close to the first observed day may be counted or not. */
const MARGIN_S = 3600;

/** Compares the advice on each retention with what was planted, and returns the retentions of which it says something. */
function expectTrueAdvice(planted: PlantedNamespace, candidates: readonly RetentionCandidate[]): number[] {
  return candidates.flatMap(({ keyRetention, evidence }) => {
    if (evidence.case !== "late") return [];
    const { perMonthLow, perMonthHigh, maxPerMillion, daysObserved, claims } = evidence.value;
    const retentionS = Number(keyRetention?.seconds);
    const months = daysObserved / 30;
    const most = plantedLate(planted, retentionS, daysObserved * DAY_S + MARGIN_S);
    const least = plantedLate(planted, retentionS, daysObserved * DAY_S - MARGIN_S);
    const said = { of: `${planted.name} ${retentionS} s`, most, least };
    const low = perMonthLow * months - 1e-6;
    expect({ ...said, isAtLeast: most >= low }, `at least ${low}`).toEqual({ ...said, isAtLeast: true });
    const high = perMonthHigh * months + 1e-6;
    expect({ ...said, isAtMost: least <= high }, `at most ${high}`).toEqual({ ...said, isAtMost: true });
    expect(maxPerMillion / 1e6).toBeGreaterThanOrEqual(least / Number(claims));
    return [retentionS];
  });
}

async function countRecords(admin: TenantAdmin, namespace: string) {
  const sum = { completed: 0, ambiguous: 0 };
  for (let pageToken = ""; ; ) {
    const counts = await admin.countRecords({ namespace, pageToken });
    sum.completed += Number(counts.completed);
    sum.ambiguous += Number(counts.ambiguous);
    if (counts.nextPageToken === "") return sum;
    pageToken = counts.nextPageToken;
  }
}

test("what the traffic plants is found, and nothing else", { timeout: 2 * LIMIT_MS }, async () => {
  const workplace = await createWorkplace();
  const dev = await startDev(workplace);
  await dev.followExample();
  const { stdout } = await plantTraffic(workplace, [...SHORT_RUN, "--address", dev.grpcUrl, "--json"]);
  const planted: Planted = JSON.parse(stdout);
  // The keys that `npm start` printed show the traffic, and the record of the banner's example stays as it is.
  expect(planted.tenant).toBe("demo");
  const admin = await connectAdmin(planted);
  expect(await countRecords(admin, EXAMPLE_NAMESPACE)).toEqual({ completed: 1, ambiguous: 0 });

  for (const namespace of planted.namespaces) {
    const { candidates } = await admin.getRetentionAdvice({ namespace: namespace.name });
    const judged = expectTrueAdvice(namespace, candidates);
    expect(judged).toContain(namespace.keyRetentionS);
    if (namespace.name === "webhooks") expect(judged).toContain(7 * DAY_S);
    const inForce = candidates.find(
      ({ keyRetention }) => Number(keyRetention?.seconds) === namespace.keyRetentionS,
    );
    const { evidence } = inForce ?? {};
    if (evidence?.case !== "late") throw new Error(`nothing is known of ${namespace.name}`);
    const late = namespace.repeats.filter((each) => each.late).reduce((sum, each) => sum + each.repeats, 0);
    // Nothing is estimated: every key is sampled.
    expect(evidence.value.perMonth * (evidence.value.daysObserved / 30)).toBeCloseTo(late, 6);
  }
  const lateIn = planted.namespaces.filter(({ repeats }) => repeats.some(({ late }) => late));
  expect(lateIn.map(({ name }) => name)).toEqual(["payments", "webhooks"]);

  // The minutes of the last hour and its hours say the same of the present: the past was not in them.
  const sum = (counted: readonly { readonly claims: bigint }[]) =>
    counted.reduce((all, { claims }) => all + claims, 0n);
  const after = timestampFromMs(Date.now() - 7_200_000);
  const minutes = sum((await admin.getUsageNow({})).minutes);
  expect(minutes).toBeLessThanOrEqual(sum((await admin.getUsage({ after, pageSize: 1_000 })).hours));

  const undeclared = planted.namespaces.filter(({ declared }) => !declared).map(({ name }) => name);
  expect((await admin.listUndeclaredNamespaces({})).names).toEqual([EXAMPLE_NAMESPACE, ...undeclared]);

  for (const { name, ambiguous } of planted.namespaces) {
    // The last workers died some seconds ago.
    await expect.poll(() => countRecords(admin, name)).toMatchObject({ ambiguous });
  }
  const payouts = planted.namespaces.find(({ name }) => name === "payouts");
  const { claims = 0, ambiguous = 0 } = payouts ?? {};
  expect(ambiguous).toBeGreaterThan(0);
  expect(await countRecords(admin, "payouts")).toEqual({ completed: claims - ambiguous, ambiguous });

  const qualities = (await admin.getKeyQuality({})).namespaces.filter(
    ({ namespace }) => namespace !== EXAMPLE_NAMESPACE,
  );
  expect(qualities.map(({ namespace }) => namespace)).toEqual(
    planted.namespaces.map(({ name }) => name).sort(),
  );
  for (const { name, keyDefects } of planted.namespaces) {
    const quality = qualities.find(({ namespace }) => namespace === name);
    const suspected = quality?.suspicions.map(({ defect }) => defect) ?? [];
    const undecided = quality?.undecided.map(({ defect }) => defect) ?? [];
    const own: readonly KeyDefect[] = keyDefects.map((defect) => KeyDefect[defect]);
    // Nothing is suspected that was not planted, and what was planted is not ruled out.
    const invented = suspected.filter((defect) => !own.includes(defect));
    expect({ name, invented }).toEqual({ name, invented: [] });
    for (const defect of own) expect([...suspected, ...undecided], name).toContain(defect);
  }
  // All fingerprints are sampled, and kept for 8 days. The server stores the last ones at its next flush.
  const minted = planted.namespaces.find(({ name }) => name === "emails")?.mintedKeys ?? [];
  const mintedKeys = minted.filter(({ agoS }) => agoS < 7.5 * DAY_S).reduce((sum, { keys }) => sum + keys, 0);
  await expect
    .poll(async () => {
      const [emails] = (await admin.getKeyQuality({ namespace: "emails" })).namespaces;
      const minted = emails?.suspicions.find(({ defect }) => defect === KeyDefect.NEW_KEY_PER_RETRY);
      return minted?.evidence[0];
    })
    .toMatchObject({ measure: "other_key_within_15_minutes", count: mintedKeys });

  const small = ["--seed", "12", "--days", "8", "--operations", "50", "--live", "1"];
  const again = await plantTraffic(workplace, [...small, "--address", dev.grpcUrl, "--json"]);
  expect(JSON.parse(again.stdout)).toMatchObject({ tenant: expect.stringMatching(/^traffic-/) });
});

test("the default traffic has enough e-mail claims for a suspicion while samples are kept", () => {
  const planner = createPlanner(randomFor("traffic of e-mails"));
  const days = Array.from({ length: 7 }, () => planner.planDay({ weekday: 1, operations: 400 }));
  const claims = days.flatMap(({ morning, retries }) => [...morning, ...retries]);
  expect(claims.filter(({ namespace }) => namespace === "emails").length).toBeGreaterThan(1000);
});

test("the traffic refuses a directory without npm start, and other machines' addresses", async () => {
  const workplace = await createWorkplace();
  await expect(plantTraffic(workplace, [])).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringContaining(`cannot read ${join(workplace.dir, ".onceward", "operator.key")}`),
  });
  await expect(plantTraffic(workplace, ["--address", "https://onceward.example"])).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringContaining("is not an address of this machine"),
  });
});
