import { expect, test } from "vitest";
import { connectOperator } from "../support/calls/admin.ts";
import { expectAccessible } from "../support/console/accessibility.ts";
import { describeInBrowser } from "../support/console/chromium.ts";
import { openConsole } from "../support/console/open-console.ts";
import { screenshot } from "../support/console/screenshots.ts";
import { seedOfRun } from "../support/console/seed.ts";
import { useConsole } from "../support/console/use-console.ts";

describeInBrowser("The page", () => {
  const { server, database, administeredTenant } = useConsole();

  test("says that the server does not answer, shows nothing as good, and recovers automatically", async () => {
    const { operatorKey } = seedOfRun();
    const page = await openConsole(server, {
      ...{ key: operatorKey, path: "/fleet", clock: "movable" },
      allowed: { printed: /Unable to preload CSS|dynamically imported module/ },
    });
    const main = page.getByRole("main");
    const good = main.locator("[data-tone=good]");
    expect(await good.count()).toBeGreaterThan(0);
    await page.route("**/*", (route) => route.abort("aborted"));
    await page.clock.runFor(5_000);
    await page.getByRole("button", { name: "Offline, retrying" }).waitFor();
    await page.getByText("The server does not answer. The page tries again automatically.").waitFor();
    expect(await good.count()).toBe(0);
    expect(await main.innerText()).not.toContain("Failed to fetch");
    await page.unroute("**/*");
    await screenshot(page, "offline");
    await page.clock.runFor(5_000);
    await page.getByRole("button", { name: "Live" }).waitFor();
    await expect.poll(() => good.count()).toBeGreaterThan(0);

    // A screen that was never opened: its file has to come from the server.
    await page.route("**/*", (route) => route.abort("aborted"));
    await page.getByRole("link", { name: "Audit" }).click();
    await main.getByText("The screen is shown as soon as it does.").waitFor();
    await page.unroute("**/*");
    await page.clock.runFor(5_000);
    await page.getByRole("heading", { name: "Audit" }).waitFor();
  });

  test("keeps what it knew while the server does not answer", async () => {
    const page = await openConsole(server, { key: seedOfRun().adminKey, clock: "movable" });
    const main = page.getByRole("main");
    const title = await page.getByRole("heading", { level: 1 }).innerText();
    const rows = await main.getByRole("row").allInnerTexts();
    await page.route("**/*", (route) => route.abort("aborted"));
    await page.clock.runFor(10_000);
    await page.getByText("The server does not answer.").first().waitFor();
    await page.clock.runFor(30_000);
    expect(await page.getByRole("heading", { level: 1 }).innerText()).toBe(title);
    expect(await main.getByRole("row").count()).toBe(rows.length);
    expect(await main.innerText()).not.toMatch(/Not answered|does not answer/);
    await expectAccessible(page);
    await screenshot(page, "home-offline");
  });

  test("shows its frame and a sign of work while the first answer is slow", async () => {
    const page = await openConsole(server, { key: seedOfRun().adminKey, path: "/jobs" });
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    await page.route("**/onceward.v1.IdentityService/WhoAmI", async (route) => {
      await released;
      await route.continue();
    });
    await page.goto("/console/jobs", { waitUntil: "commit" });
    await page.getByText("Waiting for the server…").waitFor();
    await page.getByRole("banner").getByText("Onceward").waitFor();
    expect(await page.locator("[aria-busy=true]").count()).toBe(1);
    await screenshot(page, "slow");
    release();
    await page.getByRole("heading", { name: "Jobs" }).waitFor();
  });

  test("says that the tenant is suspended, and follows when it is resumed", async () => {
    const { tenant, adminKey: key, caller } = await administeredTenant();
    const operator = connectOperator(server, seedOfRun().operatorKey);
    await caller.claim({ namespace: "charges", key: "order-1" });
    // Home of a tenant without usage shows how to make the first claim.
    const usage = () => database.query("select from usage_hours where tenant_id = $1", [tenant.id]);
    await expect.poll(async () => (await usage()).length).toBeGreaterThan(0);
    const page = await openConsole(server, { key, clock: "movable", allowed: { statuses: [400, 403, 412] } });
    await page.getByRole("heading", { name: "Nothing needs your attention" }).waitFor();
    await operator.suspendTenant({ name: tenant.name, reason: "unpaid" });
    await page.clock.runFor(10_000);
    await page.getByRole("button", { name: "Suspended" }).waitFor();
    await page.getByText("The tenant is suspended: its calls are refused").waitFor();
    const suspended = page.getByRole("heading", { level: 1, name: /^The tenant is suspended: ask/ });
    await suspended.waitFor();
    expect(await page.locator("[data-tone=good]").count()).toBe(0);
    // Its calls are refused.
    expect(await page.getByText("Nothing found").count()).toBe(0);
    await expectAccessible(page);
    await screenshot(page, "suspended");
    await page.reload();
    await suspended.waitFor();

    await operator.resumeTenant({ name: tenant.name, reason: "paid" });
    await page.clock.runFor(5_000);
    await page.getByRole("button", { name: "Live" }).waitFor();
    const main = page.getByRole("main");
    // The refusals must be shown, as soon as they are read again.
    const shown = async () => {
      await page.clock.runFor(5_000);
      return main.innerText();
    };
    await expect.poll(shown).toMatch(/Denied calls.*tenant suspended/s);
    expect(await main.innerText()).not.toContain("Not answered");
  });
});
