import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { migrate } from "../../server/src/database/migrate.ts";
import { connectClient } from "../support/calls/clients.ts";
import { ORDER } from "../support/calls/verbs.ts";
import { useOwnPostgres } from "../support/database/own-postgres.ts";
import { diagnoseDatabase, idsOf } from "../support/doctor/diagnosis.ts";
import { runHere } from "../support/processes/run-here.ts";
import { settingsFor } from "../support/processes/serve.ts";
import { startServerProcess } from "../support/servers/server-process.ts";

const postgres = useOwnPostgres({});

const PEPPERS = {
  old: "an old pepper that only this test has, 0123456789",
  new: "a new pepper that only this test has, 0123456789",
} as const;

interface PepperSettings {
  readonly ONCEWARD_API_KEY_PEPPER: string;
  readonly ONCEWARD_API_KEY_SECOND_PEPPER?: string;
}

/** A migrated database, and what happens on it with given peppers. */
async function createInstallation() {
  const url = await postgres.createDatabase();
  await migrate(url, () => {});
  const run = (args: readonly string[], peppers: PepperSettings) =>
    runHere(args, { ...settingsFor(url), ...peppers });
  let keys = 0;
  return {
    url,
    run,
    async serve(peppers: PepperSettings) {
      const server = await startServerProcess(url, { ...peppers });
      onTestFinished(() => server.end());
      return server;
    },
    async makeKey(peppers: PepperSettings) {
      const made = await run(["tenant-key", "--tenant", `tenant-${keys++}`], peppers);
      expect(made).toMatchObject({ exit: 0 });
      return made.stdout.trim();
    },
    diagnose: (peppers: PepperSettings) => diagnoseDatabase(url, { ...peppers }),
  };
}

async function claimAt(server: Parameters<typeof connectClient>[0], apiKey: string): Promise<string> {
  const client = connectClient(server, apiKey);
  return client.claim({ ...ORDER, key: "order-1" }).then(
    ({ outcome }) => outcome.case ?? "nothing",
    (error: Error) => error.message,
  );
}

const ANSWERED = /^(claimed|inProgress)$/;

test("a replica and commands refuse a pepper that is not the installation's; doctor finds it", async () => {
  const right = { ONCEWARD_API_KEY_PEPPER: PEPPERS.old };
  const wrong = { ONCEWARD_API_KEY_PEPPER: PEPPERS.new };
  const installation = await createInstallation();
  const server = await installation.serve(right);
  const apiKey = await installation.makeKey(right);
  for (const args of [["serve"], ["tenant-key", "--tenant", "acme"], ["operator-key"], ["import-tenant"]]) {
    expect(await installation.run(args, wrong)).toMatchObject({
      exit: 1,
      stdout: "",
      stderr:
        "ONCEWARD_API_KEY_PEPPER is not the pepper of this installation, so no API key would be valid: deploy/runbook.md#pepper_wrong\n",
    });
  }
  expect(idsOf(await installation.diagnose(wrong))).toEqual(["pepper_wrong"]);
  expect(idsOf(await installation.diagnose(right))).toEqual([]);
  expect(await claimAt(server, apiKey)).toBe("claimed");
});

/** Returns the peppers of each step of the page. */
async function stepsOfPage(): Promise<readonly PepperSettings[]> {
  const page = await readFile(fileURLToPath(new URL("../../deploy/README.md", import.meta.url)), "utf8");
  const rows = [...page.matchAll(/^\| \d \| (old|new) \| (old|new|—) \|/gm)];
  return rows.map(([, current = "", second = ""]) => ({
    ONCEWARD_API_KEY_PEPPER: PEPPERS[current as keyof typeof PEPPERS],
    ...(second !== "—" && { ONCEWARD_API_KEY_SECOND_PEPPER: PEPPERS[second as keyof typeof PEPPERS] }),
  }));
}

test("the page's steps change the pepper: used keys stay valid, two steps serve together", async () => {
  const before = { ONCEWARD_API_KEY_PEPPER: PEPPERS.old };
  const installation = await createInstallation();
  const first = await installation.serve(before);
  const apiKeys = [await installation.makeKey(before), await installation.makeKey(before)];
  const unused = await installation.makeKey(before);
  const steps = await stepsOfPage();
  expect(steps).toHaveLength(3);

  let earlier = { server: first, peppers: before as PepperSettings };
  for (const peppers of steps) {
    const server = await installation.serve(peppers);
    // The replicas of a step that has both peppers accept a key that those of the next step made.
    if (earlier.peppers.ONCEWARD_API_KEY_SECOND_PEPPER !== undefined && peppers === steps[1])
      apiKeys.push(await installation.makeKey(peppers));
    for (const apiKey of apiKeys) {
      for (const replica of [server, earlier.server])
        expect(await claimAt(replica, apiKey)).toMatch(ANSWERED);
    }
    await earlier.server.end();
    earlier = { server, peppers };
    if (peppers !== steps[1]) continue;
    await expect
      .poll(async () => {
        for (const apiKey of apiKeys) await claimAt(server, apiKey);
        const { findings } = await installation.diagnose(peppers);
        return findings.find(({ id }) => id === "second_pepper")?.summary;
      })
      .toMatch(/^1 API keys are not yet stored under ONCEWARD_API_KEY_PEPPER/);
  }
  expect(await claimAt(earlier.server, unused)).toMatch(/credential/i);
  expect(await installation.run(["serve"], before)).toMatchObject({ exit: 1 });
  expect(idsOf(await installation.diagnose(earlier.peppers))).toEqual([]);
});

test("a replica restarted in the first step does not keep the second's from starting", async () => {
  const [firstStep, secondStep] = await stepsOfPage();
  if (firstStep === undefined || secondStep === undefined) throw new Error("the page has no steps");
  const installation = await createInstallation();
  await installation.makeKey({ ONCEWARD_API_KEY_PEPPER: PEPPERS.old });
  for (const peppers of [firstStep, secondStep, firstStep, secondStep]) {
    const server = await installation.serve(peppers);
    await server.end();
  }
});
