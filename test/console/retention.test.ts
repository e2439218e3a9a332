import type { Locator, Page } from "playwright-core";
import { expect, test } from "vitest";
import { connectAdmin } from "../support/calls/admin.ts";
import { expectAccessible } from "../support/console/accessibility.ts";
import { describeInBrowser } from "../support/console/chromium.ts";
import { expectNoSidewaysScroll } from "../support/console/layout.ts";
import { openConsole, untilLoaded } from "../support/console/open-console.ts";
import { screenshot } from "../support/console/screenshots.ts";
import { seedOfRun } from "../support/console/seed.ts";
import { useConsole } from "../support/console/use-console.ts";

const HOUR_S = 3600n;
const DAY_S = 24n * HOUR_S;

describeInBrowser("The retention of a namespace", () => {
  const { server, database } = useConsole();

  const ownRetention = async (name: string) => {
    const { namespace } = await connectAdmin(server, seedOfRun().adminKey).getNamespace({ name });
    return namespace?.policy?.keyRetention?.seconds;
  };

  const answerOf = (page: Page) => page.getByRole("region", { name: "Is the retention long enough?" });

  test("that is too short is named, and fixed with three clicks", async () => {
    const { adminKey } = seedOfRun();
    const page = await openConsole(server, { key: adminKey, path: "/" });
    let clicks = 0;
    const click = async (target: Locator) => {
      await target.click();
      clicks += 1;
    };
    // The check of Home that names it leads to it.
    const check = page.getByRole("row").filter({ hasText: "Retention too short" });
    await click(check.getByRole("link", { name: "webhooks" }));
    await untilLoaded(page);
    expect(new URL(page.url()).pathname).toBe("/console/namespaces/webhooks");
    const answer = answerOf(page);
    await expect
      .poll(() => answer.innerText())
      .toMatch(/^Too short: 24h\s+About [\d,]+ duplicates a month come later, and take effect a second time/);

    const line = page.getByRole("slider", { name: "Proposed key retention" });
    const shownMs = async () => Number(await line.getAttribute("aria-valuenow"));
    const todayMs = await shownMs();
    await line.focus();
    await page.keyboard.press("ArrowRight");
    expect(await shownMs()).toBeGreaterThan(todayMs);
    await page.keyboard.press("Home");
    expect(await shownMs()).toBeLessThan(todayMs);
    const picture = await page.getByRole("group", { name: "When duplicates come" }).boundingBox();
    if (picture === null) throw new Error("the picture has no place");
    await page.mouse.move(picture.x + picture.width / 3, picture.y + 60);
    await page.mouse.down();
    await page.mouse.move(picture.x + picture.width - 30, picture.y + 60, { steps: 4 });
    await page.mouse.up();
    expect(await shownMs()).toBeGreaterThan(todayMs);
    // What is typed moves the line, the table and the command.
    const field = page.getByLabel("Key retention", { exact: true });
    await field.fill("2d");
    expect(await shownMs()).toBe(2 * 86_400_000);
    await page.getByRole("columnheader", { name: "Proposed, 48h" }).waitFor();
    await page.getByText("--key 48h").waitFor();
    // It is saved from where the picture is.
    const { y = 0 } = (await page.getByRole("button", { name: "Save" }).boundingBox()) ?? {};
    expect(y).toBeLessThan(800);
    await page.getByText("For experts: the curve, with intervals").click();
    await expectAccessible(page);
    await screenshot(page, "namespace-retention");
    for (const width of [320, 768]) {
      await page.setViewportSize({ width, height: 900 });
      await expectNoSidewaysScroll(page);
      await screenshot(page, `namespace-retention-${width}`);
    }
    await page.setViewportSize({ width: 1280, height: 800 });

    const use = answer.getByRole("button", { name: /^Use / });
    const advised = (await use.innerText()).slice("Use ".length);
    await click(use);
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("row", { name: `Key retention 24h ${advised}` }).waitFor();
    expect(await ownRetention("webhooks")).toBe(DAY_S);
    // A longer retention loses nothing: no name is typed, and it is for the stored records, too.
    const existing = dialog.getByLabel(
      /Also for the [\d,]+ records stored now \(0 of them forgotten at once\)/,
    );
    expect(await existing.isChecked()).toBe(true);
    await expectAccessible(page);
    await screenshot(page, "namespace-retention-review");
    await click(dialog.getByRole("button", { name: "Save" }));
    await page
      .getByText(/^Saved the policy of the namespace webhooks\..* Job \d+ changes the stored/)
      .waitFor();
    expect(clicks).toBeLessThanOrEqual(3);
    expect(await ownRetention("webhooks")).toBeGreaterThan(DAY_S);
    await expect
      .poll(() => answer.innerText())
      .toMatch(new RegExp(`^(None late|Too early to say): ${advised}\\s+It was 24h\\.`));
    // The evidence stays: the duplicates that came later than before.
    await page.getByText("The numbers as a table").first().click();
    expect(await page.getByRole("table").first().innerText()).toMatch(/24h – /);
    await page.getByLabel("Key retention", { exact: true }).fill("500d");
    await page.keyboard.press("Tab");
    await page.getByText("It must be 1m to 400d.").waitFor();
    const { jobs } = await connectAdmin(server, adminKey).listRecordJobs({});
    expect(jobs[0]).toMatchObject({ namespace: "webhooks" });
  });

  test("that is longer than needed can be shortened, after its name was typed", async () => {
    const { adminKey, tenant } = seedOfRun();
    // As many claims and days as it takes to show that one duplicate in a million is later.
    await database.query(
      `update insight_hours h
          set claims = claims * 100000,
              hour = hour - case when hour = (select min(o.hour) from insight_hours o
                                               where o.tenant_id = h.tenant_id and o.namespace = h.namespace)
                                 then interval '40 days' else interval '0' end
        where namespace = 'orders' and tenant_id = (select id from tenants where name = $1)`,
      [tenant],
    );
    const page = await openConsole(server, { key: adminKey, path: "/namespaces/orders" });
    const answer = answerOf(page);
    await expect.poll(() => answer.innerText()).toMatch(/^Longer than needed: 24h\s.* would be long enough/s);
    await answer.getByRole("button", { name: /^Use / }).click();
    const dialog = page.getByRole("dialog");
    // A shorter retention forgets keys: it is for later claims, and the name is typed.
    expect(await dialog.getByLabel(/Also for the/).isChecked()).toBe(false);
    await dialog.getByLabel("Type orders to confirm").waitFor();
    expect(await ownRetention("orders")).toBe(DAY_S);
    await expectAccessible(page);
  });

  test("has the duplicates that came after their key's retention beside its policy", async () => {
    const { adminKey, tenant } = seedOfRun();
    await database.query(
      `update usage_hours set late_keys_refused = 3, late_keys_granted = 2
       where namespace = 'payments' and hour = (select max(hour) from usage_hours where namespace = 'payments')
         and tenant_id = (select id from tenants where name = $1)`,
      [tenant],
    );
    for (const table of ["insight_hours", "insight_late_hours"])
      await database.query(
        `delete from ${table} where namespace = 'payments' and hour < now() - interval '5 days'`,
      );
    const page = await openConsole(server, { key: adminKey, path: "/namespaces/payments" });
    await page
      .getByText(/^Counted in the last 30 days: 3 duplicates refused .* and 2 that ran although it was\./)
      .waitFor();
    await page.getByLabel("Late keys").waitFor();
    // Too few days show how many come later than 12 hours: the picture claims no more than the table.
    await page.getByLabel("Key retention", { exact: true }).fill("12h");
    await page.getByText("The numbers as a table").first().click();
    await page.getByRole("row", { name: /^24h – 48h at least \d/ }).waitFor();
    const late = page.getByRole("row", { name: /^Late duplicates a month/ });
    expect(await late.innerText()).toMatch(/not known/);
  });
});
