import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import type { AdministeredTenant } from "../support/calls/admin.ts";
import { copyRecord } from "../support/calls/records.ts";
import { complete, ORDER } from "../support/calls/verbs.ts";
import { describeInBrowser } from "../support/console/chromium.ts";
import { openConsole, untilLoaded, visit } from "../support/console/open-console.ts";
import { tenantRoutes } from "../support/console/routes.ts";
import { plantJob } from "../support/console/seed.ts";
import { useConsole } from "../support/console/use-console.ts";
import type { TestDatabase } from "../support/database/database.ts";

/** Gives a tenant many namespaces, each with its own policy, and many completed records, in SQL. Returns a job of it. */
async function plantCrowd({ tenant, caller }: AdministeredTenant, database: TestDatabase): Promise<string> {
  await complete(caller);
  await database.query(
    `insert into namespaces (tenant_id, name, key_retention_s)
     select $1, 'crowd-' || lpad(n::text, 6, '0'), 86400 from generate_series(1, $2::int) n`,
    [tenant.id, NAMESPACES],
  );
  await copyRecord(database, tenant, ORDER.key, {
    count: RECORDS,
    keySql: "'crowd-' || lpad(n::text, 6, '0')",
  });
  return plantJob(database, tenant.id);
}

/** Of one list. */
const MAX_ROWS = 200;
/** Home makes 11 calls; a screen that calls for each row would make more than this. */
const MAX_CALLS = 20;
const NAMESPACES = 10_000;
const RECORDS = 20_000;
/** A few pages of any list. */
const MAX_BYTES = 512 * 1024;

interface Load {
  calls: number;
  bytes: number;
}

function measureCalls(page: Page): Load {
  const load: Load = { calls: 0, bytes: 0 };
  page.on("response", (response) => {
    if (!response.url().includes("/onceward.v1.")) return;
    load.calls++;
    // The answer of a call that the page gave up has no body.
    void response.body().then(
      (body) => {
        load.bytes += body.length;
      },
      () => {},
    );
  });
  return load;
}

function rows(page: Page): Promise<number> {
  return page.locator("main tr, main li").count();
}

describeInBrowser("With 10,000 namespaces and 20,000 records", () => {
  const { server, database, administeredTenant } = useConsole();

  test("every screen reads and shows a bounded part, and lists continue by pages", async () => {
    const administered = await administeredTenant();
    const { tenant, adminKey: key } = administered;
    const jobId = await plantCrowd(administered, database);
    // A screen whose answers no other screen shares, so that each screen makes the calls of a first visit.
    const page = await openConsole(server, { key, path: "/no-screen" });

    const name = "crowd-000001";
    for (const { path } of tenantRoutes({ record: ORDER, jobId, retentionOf: name, policyOf: name })) {
      const load = measureCalls(page);
      await visit(page, path);
      const shown = { path, rows: await rows(page), ...load };
      expect(shown.rows, JSON.stringify(shown)).toBeLessThanOrEqual(MAX_ROWS);
      expect(shown.calls, JSON.stringify(shown)).toBeLessThanOrEqual(MAX_CALLS);
      expect(shown.bytes, JSON.stringify(shown)).toBeLessThanOrEqual(MAX_BYTES);
      page.removeAllListeners("response");
    }

    for (const path of ["/namespaces", "/records"]) {
      await visit(page, path);
      const firsts = [await firstOfCrowd(page)];
      for (let pages = 1; pages < 3; pages++) {
        await page.getByRole("link", { name: "Next page" }).click();
        await expect.poll(() => firstOfCrowd(page)).not.toBe(firsts.at(-1));
        await untilLoaded(page);
        firsts.push(await firstOfCrowd(page));
      }
      expect(firsts).toEqual([...new Set(firsts)].sort());
      // A page of a list can be shared.
      await page.reload();
      await untilLoaded(page);
      expect(await firstOfCrowd(page)).toBe(firsts.at(-1));
      await page.goBack();
      await expect.poll(() => firstOfCrowd(page)).toBe(firsts.at(-2));
    }

    // A namespace is found by three keys, and opened by the next.
    await database.query("insert into namespaces (tenant_id, name) values ($1, 'payouts')", [tenant.id]);
    await visit(page, "/namespaces");
    await page.getByText("20 of 10,000 declared namespaces, by name").waitFor();
    await page.keyboard.press("f");
    await page.keyboard.type("pa");
    await page.getByText("1 of 1 declared namespace, those with late duplicates first").waitFor();
    await page.getByRole("button", { name: "Open payouts" }).waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "payouts" }).waitFor();
    // From any screen, by the search.
    await page.keyboard.press("/");
    await page.keyboard.type("crowd-0099");
    await page.keyboard.press("Enter");
    await page.getByRole("link", { name: "crowd-009900" }).first().waitFor();
  });
});

/** Returns the first planted name that the page shows. */
async function firstOfCrowd(page: Page): Promise<string> {
  return /crowd-\d{6}/.exec(await page.getByRole("main").innerText())?.[0] ?? "";
}
