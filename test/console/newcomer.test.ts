import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { describeInBrowser } from "../support/console/chromium.ts";
import { openConsole, untilLoaded } from "../support/console/open-console.ts";
import { CHILD_ENVIRONMENT } from "../support/processes/child-environment.ts";
import { createWorkplaceWithCluster, type Workplace } from "../support/processes/command.ts";
import { startDev } from "../support/processes/dev.ts";

const run = promisify(execFile);
const TRAFFIC = fileURLToPath(new URL("../lab/traffic/main.ts", import.meta.url));
/** The least that shows a retention that is too short, and workers that died. */
const SHORT_RUN = ["--seed", "24", "--days", "9", "--operations", "100", "--live", "1"];
const LIMIT_MS = 240_000;

/** Runs `npm run lab -- traffic`, which plants in the tenant of the printed keys. */
async function plantTraffic({ dir, temporaryDir }: Workplace, address: string): Promise<void> {
  const args = ["--conditions=@onceward/source", TRAFFIC, ...SHORT_RUN, "--address", address];
  const env = { ...CHILD_ENVIRONMENT, TMPDIR: temporaryDir };
  await run(process.execPath, args, { cwd: dir, env, timeout: LIMIT_MS });
}

async function follow(page: Page, link: string): Promise<void> {
  await page
    .getByRole("navigation", { name: "Screens" })
    .getByRole("link", { name: new RegExp(`^${link}( \\d+)?$`) })
    .click();
  await page.getByRole("heading", { level: 1, name: link }).waitFor();
  await untilLoaded(page);
}

describeInBrowser("A newcomer with npm start and npm run lab -- traffic", () => {
  test("lengthens a retention, decides on a payout, and finds both in the audit", {
    timeout: 2 * LIMIT_MS,
  }, async () => {
    const workplace = await createWorkplaceWithCluster();
    const dev = await startDev(workplace);
    const [, address = ""] = await dev.untilPrinted(/^ *Console +(http:\S+)$/m);
    const [, printedKey = ""] = await dev.untilPrinted(/admin's key +(\S+)/);
    const planting = plantTraffic(workplace, dev.grpcUrl);
    const page = await openConsole(
      { httpPort: Number(new URL(address).port) },
      { allowed: { statuses: [401] } },
    );
    await page.getByLabel("API key").fill(printedKey);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("banner").getByText("demo", { exact: true }).waitFor();
    await planting;

    const startedAtMs = performance.now();
    await page.reload();
    await untilLoaded(page);
    await follow(page, "Namespaces");
    const tooShort = page.getByRole("row").filter({ hasText: "Too short" }).first();
    const namespace = await tooShort.getByRole("link").innerText();
    await tooShort.getByRole("link").click();
    await page.getByRole("heading", { level: 1, name: namespace }).waitFor();
    await page.getByLabel("Key retention", { exact: true }).fill("7d");
    await page.getByRole("button", { name: "Save" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("row").filter({ hasText: "7d" }).first().waitFor();
    await dialog.getByRole("button", { name: "Save" }).click();
    await page.getByText(`Saved the policy of the namespace ${namespace}.`).waitFor();

    await follow(page, "Ambiguous");
    const payout = page
      .getByRole("row", { name: "payouts" })
      .filter({ has: page.getByRole("rowheader") })
      .first();
    const payoutKey = await payout.getByRole("rowheader").innerText();
    await page.getByLabel(`Select ${payoutKey}`).check();
    await page.getByRole("button", { name: "It did not happen" }).click();
    await dialog.getByLabel("Reason").fill("the bank never got it");
    await dialog.getByRole("button", { name: "It did not happen", exact: true }).click();
    await dialog.waitFor({ state: "hidden" });

    await follow(page, "Audit");
    const events = page.getByRole("main");
    // Events name a record by a digest of its key.
    for (const text of [
      "Changed namespace",
      namespace,
      "Resolved record",
      "payouts/",
      "the bank never got it",
    ]) {
      await expect.poll(() => events.innerText()).toContain(text);
    }
    const seconds = (performance.now() - startedAtMs) / 1000;
    process.stderr.write(`The newcomer's walk through the console took ${seconds.toFixed(1)} s.\n`);
  });
});
