import { expect, test } from "vitest";
import { expectAccessible } from "../support/console/accessibility.ts";
import { describeInBrowser } from "../support/console/chromium.ts";
import { expectNoSidewaysScroll } from "../support/console/layout.ts";
import { openConsole, untilLoaded } from "../support/console/open-console.ts";
import { screenshot } from "../support/console/screenshots.ts";
import { seedOfRun } from "../support/console/seed.ts";
import { useConsole } from "../support/console/use-console.ts";

describeInBrowser("The menu", () => {
  const { server } = useConsole();

  test("chooses colours and the form of times, also for the next visit", async () => {
    const page = await openConsole(server, { key: seedOfRun().adminKey, path: "/audit", width: 320 });
    // The link of the screen is seen, beyond the first ones that the window has room for.
    const current = page.getByRole("navigation", { name: "Screens" }).locator("[aria-current=page]");
    const isSeen = async () => {
      const { x = -1, width = 0 } = (await current.boundingBox()) ?? {};
      return x >= 0 && x + width <= 320;
    };
    await expect.poll(isSeen).toBe(true);
    // Six fields would fill the screen: they are folded while nothing is filtered.
    expect(await page.getByLabel("Actor", { exact: true }).isVisible()).toBe(false);
    await page.getByText("Filters", { exact: true }).click();
    await page.getByLabel("Actor", { exact: true }).waitFor();
    await page.getByRole("link", { name: "Records", exact: true }).click();
    await untilLoaded(page);
    const when = page.locator("tbody time").first();
    await expect.poll(() => when.innerText()).toMatch(/ago$|^now$/);
    expect(await when.getAttribute("title")).toMatch(/^\d{4}-\d\d-\d\d .* UTC$/);
    await page.getByRole("button", { name: "Menu" }).click();
    await page.getByLabel("Colours").selectOption("Dark");
    await page.getByLabel("Times").selectOption("Date and time, too");
    await expectAccessible(page);
    await expectNoSidewaysScroll(page);
    await screenshot(page, "menu");
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.reload();
    await untilLoaded(page);
    await page.setViewportSize({ width: 320, height: 800 });
    await expect.poll(isSeen).toBe(true);
    expect(await when.innerText()).toMatch(/^\d{4}-\d\d-\d\d .* UTC/);
    expect(await page.evaluate(() => getComputedStyle(document.documentElement).colorScheme)).toBe("dark");
  });
});
