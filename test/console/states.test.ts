import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { expectAccessible } from "../support/console/accessibility.ts";
import { describeInBrowser } from "../support/console/chromium.ts";
import { openConsole, untilLoaded, visit } from "../support/console/open-console.ts";
import { routesOf } from "../support/console/routes.ts";
import { screenshot } from "../support/console/screenshots.ts";
import { seedOfRun } from "../support/console/seed.ts";
import { useConsole } from "../support/console/use-console.ts";

/** The audit is for both. */
const ONLY_OPERATOR_PATHS = ["/tenants", "/tenants/acme", "/fleet"];
/** Lists that a new tenant has nothing in. */
const EMPTY_PATHS = ["/ambiguous", "/records", "/namespaces", "/key-quality", "/jobs", "/audit"];

function pathsOfAdmins(): readonly string[] {
  return routesOf(seedOfRun()).flatMap(({ path, role }) => (role === "adminKey" ? [path] : []));
}

describeInBrowser("A screen", () => {
  const { server, administeredTenant } = useConsole();

  /** Returns the paths whose screen does not say so. */
  async function pathsWithout(
    page: Page,
    paths: readonly string[],
    said: RegExp,
  ): Promise<readonly string[]> {
    const without: string[] = [];
    for (const path of paths) {
      await visit(page, path);
      const text = await page.getByRole("main").innerText();
      if (!said.test(text)) without.push(`${path}: ${text}`);
    }
    return without;
  }

  test("that the role may not see says which role may", async () => {
    const { callerKey, operatorKey, adminKey } = seedOfRun();
    const tenantPaths = pathsOfAdmins();
    for (const [key, paths, needed] of [
      [callerKey, tenantPaths, /^This key is for services/],
      [
        operatorKey,
        tenantPaths.filter((path) => path !== "/" && path !== "/audit"),
        /needs the role Tenant admin/,
      ],
      [adminKey, ONLY_OPERATOR_PATHS, /needs the role Operator/],
    ] as const) {
      const page = await openConsole(server, { key, path: "/no-screen" });
      expect(await pathsWithout(page, paths, needed)).toEqual([]);
    }
  });

  test("of a caller's key explains the key over the whole width, and leads to another", async () => {
    const page = await openConsole(server, { key: seedOfRun().callerKey, path: "/records" });
    const main = page.getByRole("main");
    const { width = 0 } = (await main.boundingBox()) ?? {};
    expect(width).toBeGreaterThan(1000);
    expect(await main.innerText()).toContain(".onceward/admin.key");
    await expectAccessible(page);
    await screenshot(page, "caller");
    await page.getByRole("button", { name: "Sign in with another key" }).click();
    await page.getByLabel("API key").waitFor();
  });

  test("without anything to list says so, with the command that does the same", async () => {
    const { adminKey: key } = await administeredTenant();
    const page = await openConsole(server, { key });
    expect(await pathsWithout(page, EMPTY_PATHS, /\bonceward [a-z]/)).toEqual([]);
  });

  test("whose call fails says why, with the request's id, and repeats the call when asked", async () => {
    const { adminKey } = seedOfRun();
    const page = await openConsole(server, {
      ...{ key: adminKey, path: "/no-screen" },
      allowed: { statuses: [500] },
    });
    const calls = /\/onceward\.v1\.TenantAdminService\//;
    const failing: string[] = [];
    for (const path of pathsOfAdmins()) {
      await page.route(calls, (route) =>
        route.fulfill({
          status: 500,
          headers: { "content-type": "application/json", "x-request-id": "request-of-test" },
          body: JSON.stringify({ code: "internal", message: "the disk is on fire" }),
        }),
      );
      // A new load: nothing is known from an earlier screen.
      await page.goto(`/console${path}`);
      await untilLoaded(page).catch(({ message }: Error) => failing.push(`${path}: ${message}`));
      const text = await page.getByRole("main").innerText();
      const isSaid = text.includes("the disk is on fire") && text.includes("request-of-test");
      await page.unroute(calls);
      // All at once: the first can repeat the calls of the others.
      await page.getByRole("button", { name: "Try again" }).evaluateAll((buttons) => {
        for (const button of buttons as HTMLElement[]) button.click();
      });
      await untilLoaded(page);
      await page
        .getByText("the disk is on fire")
        .first()
        .waitFor({ state: "detached" })
        .catch(() => {});
      const again = await page.getByRole("main").innerText();
      if (!isSaid || again.includes("the disk is on fire")) failing.push(`${path}: ${text}\nAgain: ${again}`);
    }
    expect(failing).toEqual([]);
  });

  test("that does not exist says so", async () => {
    const page = await openConsole(server, { key: seedOfRun().adminKey, path: "/no-screen" });
    expect(await page.getByRole("main").innerText()).toContain("There is no such page");
    expect(await page.title()).toContain("Not found");
  });
});
