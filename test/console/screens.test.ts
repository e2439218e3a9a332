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

describeInBrowser("Every screen", () => {
  const { server } = useConsole();

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
});
