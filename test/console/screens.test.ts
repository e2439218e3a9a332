import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { expectAccessible } from "../helpers/console/accessibility.ts";
import { describeInBrowser } from "../helpers/console/chromium.ts";
import { expectNoShift, expectNoSidewaysScroll } from "../helpers/console/layout.ts";
import { openConsole, untilLoaded } from "../helpers/console/open-console.ts";
import { ROUTES, type Route } from "../helpers/console/routes.ts";
import { screenshot } from "../helpers/console/screenshots.ts";
import { seedOfRun } from "../helpers/console/seed.ts";
import { useConsole } from "../helpers/console/use-console.ts";

/** WCAG 2.2, 1.4.10: content reflows at this width. */
const REFLOW_WIDTH = 320;
/** A screen of 1280 by 800 px at 200 %. */
const ZOOMED = { width: 640, height: 400 };
const WINDOW = { width: 1280, height: 800 };

/** Returns what has the focus: its role or element, and its name. */
function focused(page: Page): Promise<string> {
  return page.evaluate(() => {
    const element = document.activeElement;
    return `${element?.tagName.toLowerCase()} ${element?.textContent?.trim().slice(0, 60)}`;
  });
}

describeInBrowser("Every screen", () => {
  const { server } = useConsole();

  test.each(ROUTES)(
    "$name is accessible, reflows, and does not move while it loads",
    async ({ name, path, role }: Route) => {
      const page = await openConsole(server, { key: seedOfRun()[role], path });
      await expectNoShift(page);
      const heading = await page.getByRole("heading", { level: 1 }).innerText();
      expect(await page.getByRole("heading", { level: 1 }).count()).toBe(1);
      expect(await page.title()).toContain(heading);
      await expectAccessible(page);
      await screenshot(page, name);
      await page.setViewportSize(ZOOMED);
      await expectNoSidewaysScroll(page);
      await page.setViewportSize({ width: REFLOW_WIDTH, height: WINDOW.height });
      await expectNoSidewaysScroll(page);
      await expectAccessible(page);
      await screenshot(page, `${name}-narrow`);
    },
  );

  test.each(["adminKey", "operatorKey"] as const)("is reached by keys (%s)", async (role) => {
    const page = await openConsole(server, { key: seedOfRun()[role] });
    const links = page.getByRole("navigation", { name: "Screens" }).getByRole("link");
    const names = await links.allInnerTexts();
    // The first Tab reaches the link that skips the navigation, and the next ones each link of it.
    await page.keyboard.press("Tab");
    expect(await focused(page)).toMatch(/^a Skip/);
    for (const name of names) {
      const link = links.filter({ hasText: name }).first();
      await expect
        .poll(async () => {
          await page.keyboard.press("Tab");
          return await focused(page);
        })
        .toBe(`a ${name}`);
      await page.keyboard.press("Enter");
      await untilLoaded(page);
      await expect.poll(() => focused(page)).toMatch(/^h1 /);
      expect(await link.getAttribute("aria-current")).toBe("page");
    }
  });
});
