import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { expectAccessible } from "../support/console/accessibility.ts";
import { describeInBrowser } from "../support/console/chromium.ts";
import { expectNoShift, expectNoSidewaysScroll, forgetShifts } from "../support/console/layout.ts";
import { openConsole, untilLoaded, visit } from "../support/console/open-console.ts";
import { routesOf } from "../support/console/routes.ts";
import { readmeScreenshot, screenshot } from "../support/console/screenshots.ts";
import { seedOfRun } from "../support/console/seed.ts";
import { useConsole } from "../support/console/use-console.ts";

/** WCAG 2.2, 1.4.10: content reflows at this width. */
const REFLOW_WIDTH = 320;
/** A screen of 1280 by 800 px at 200 %. */
const ZOOMED = { width: 640, height: 400 };
const WINDOW = { width: 1280, height: 800 };
/** The pictures of README by the screen's name, with their height: each has at most 150 KB. */
const README_PICTURES = new Map([["ambiguous", { picture: "ambiguous", height: 460 }]]);
const ROLES = ["adminKey", "operatorKey"] as const;

/** The audit is for both. */
const ONLY_OPERATOR_PATHS = ["/tenants", "/tenants/acme", "/fleet"];
/** Lists that a new tenant has nothing in. */
const EMPTY_PATHS = ["/ambiguous", "/records", "/namespaces", "/key-quality", "/jobs", "/audit"];

function pathsOfAdmins(): readonly string[] {
  return routesOf(seedOfRun()).flatMap(({ path, role }) => (role === "adminKey" ? [path] : []));
}

async function expectTitle(page: Page): Promise<void> {
  const headings = await page.getByRole("heading", { level: 1 }).allInnerTexts();
  expect(headings).toHaveLength(1);
  expect(await page.title()).toContain(headings[0]);
}

async function expectReflow(page: Page): Promise<void> {
  for (const size of [ZOOMED, { ...WINDOW, width: REFLOW_WIDTH }]) {
    await page.setViewportSize(size);
    await expectNoSidewaysScroll(page);
  }
}

/** Returns what has the focus: its role or element, and its name. */
function focused(page: Page): Promise<string> {
  return page.evaluate(() => {
    const element = document.activeElement;
    return `${element?.tagName.toLowerCase()} ${element?.textContent?.trim().slice(0, 60)}`;
  });
}

describeInBrowser("A screen", () => {
  const { server, administeredTenant } = useConsole();

  test.each(ROLES)("is accessible, reflows, and does not move while it loads (%s)", async (role) => {
    const page = await openConsole(server, { key: seedOfRun()[role], path: "/no-screen" });
    const defects: string[] = [];
    for (const { name, path } of routesOf(seedOfRun()).filter((route) => route.role === role)) {
      await page.setViewportSize(WINDOW);
      await forgetShifts(page);
      await visit(page, path);
      for (const check of [expectNoShift, expectTitle, expectAccessible, expectReflow]) {
        // All screens are looked at, so that one run tells all defects.
        await check(page).catch((error: Error) => defects.push(`${name}: ${error.message}`));
      }
      await page.setViewportSize(WINDOW);
      await screenshot(page, name);
      const shown = README_PICTURES.get(name);
      if (shown !== undefined) await readmeScreenshot(page, shown.picture, shown.height);
    }
    expect(defects, defects.join("\n\n")).toEqual([]);
  });

  test.each(ROLES)("is reached by keys (%s)", async (role) => {
    const page = await openConsole(server, { key: seedOfRun()[role] });
    const links = page.getByRole("navigation", { name: "Screens" }).getByRole("link");
    // A count comes later.
    const names = (await links.allTextContents()).map((text) => text.replace(/\s*\d.*/, ""));
    // The first Tab reaches the link that skips the navigation, and the next ones each link of it.
    await page.keyboard.press("Tab");
    expect(await focused(page)).toMatch(/^a Skip/);
    // The first link is the one of the screen that is shown already.
    for (const name of [...names.slice(1), ...names.slice(0, 1)]) {
      const link = links.filter({ hasText: name }).first();
      await expect
        .poll(async () => {
          await page.keyboard.press("Tab");
          return await focused(page);
        })
        .toContain(`a ${name}`);
      await page.keyboard.press("Enter");
      await untilLoaded(page);
      await expect.poll(() => focused(page)).toMatch(/^h1 /);
      expect(await link.getAttribute("aria-current")).toBe("page");
    }
  });

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
