import type { Locator } from "playwright-core";
import { expect, test } from "vitest";
import { expectAccessible } from "../support/console/accessibility.ts";
import { describeInBrowser } from "../support/console/chromium.ts";
import { expectNoSidewaysScroll } from "../support/console/layout.ts";
import { openConsole, untilLoaded } from "../support/console/open-console.ts";
import { screenshot } from "../support/console/screenshots.ts";
import { seedOfRun } from "../support/console/seed.ts";
import { useConsole } from "../support/console/use-console.ts";

/** Returns the names of screens; a link may show a count after its name. */
async function namesOf(links: Locator): Promise<readonly string[]> {
  return (await links.allInnerTexts()).map((text) => text.replace(/\s+\d+$/, ""));
}

describeInBrowser("The keys and choices of the console", () => {
  const { server } = useConsole();

  test.each(["adminKey", "operatorKey"] as const)(
    "lead to every screen of the navigation (%s)",
    async (role) => {
      const page = await openConsole(server, { key: seedOfRun()[role] });
      await page.keyboard.press("?");
      const dialog = page.getByRole("dialog", { name: "Shortcuts" });
      await dialog.waitFor();
      await expectAccessible(page);
      const goTo = (await dialog.getByRole("row").allInnerTexts()).flatMap((row) => {
        const [, letter, label] = /^g\s*([a-z])\s+(.+)$/.exec(row.trim()) ?? [];
        return letter === undefined || label === undefined ? [] : [{ letter, label }];
      });
      const links = page.getByRole("navigation", { name: "Screens" }).getByRole("link");
      expect(goTo.map(({ label }) => label)).toEqual(await namesOf(links));
      await page.keyboard.press("Escape");
      await dialog.waitFor({ state: "hidden" });

      for (const { letter, label } of goTo) {
        await page.keyboard.press("g");
        await page.keyboard.press(letter);
        await expect.poll(() => namesOf(links.and(page.locator("[aria-current=page]")))).toEqual([label]);
        await untilLoaded(page);
      }
    },
  );

  test("wait 1.5 s for the letter after g", async () => {
    const page = await openConsole(server, { key: seedOfRun().adminKey, path: "/audit", clock: "movable" });
    const pathAfter = async (waitedMs: number) => {
      await page.keyboard.press("g");
      await page.clock.fastForward(waitedMs);
      await page.keyboard.press("j");
      return new URL(page.url()).pathname;
    };
    expect(await pathAfter(2_000)).toBe("/console/audit");
    expect(await pathAfter(0)).toBe("/console/jobs");
    await untilLoaded(page);
  });

  test("find a tenant for an operator", async () => {
    const page = await openConsole(server, { key: seedOfRun().operatorKey, path: "/fleet" });
    await page.keyboard.press("/");
    await page.keyboard.type("traf");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Tenants" }).waitFor();
    await untilLoaded(page);
    expect(new URL(page.url()).searchParams.get("search")).toBe("traf");
  });

  test("can be switched off, also for the next visit", async () => {
    const page = await openConsole(server, { key: seedOfRun().adminKey });
    const dialog = page.getByRole("dialog", { name: "Shortcuts" });
    const keys = page.getByRole("button", { name: "Shortcuts", exact: true });
    await keys.click();
    await dialog.getByRole("checkbox").uncheck();
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "hidden" });
    expect(await keys.evaluate((button) => button === document.activeElement)).toBe(true);
    for (const reload of [false, true]) {
      if (reload) await page.reload();
      await untilLoaded(page);
      await page.keyboard.press("?");
      await page.keyboard.press("g");
      await page.keyboard.press("j");
      // Had a key acted, then before this click.
      await keys.click();
      await dialog.waitFor();
      expect(new URL(page.url()).pathname).toBe("/console/");
      expect(await page.getByRole("dialog").count()).toBe(1);
      await page.keyboard.press("Escape");
    }
    await keys.click();
    await dialog.getByRole("checkbox").check();
    await page.keyboard.press("Escape");
    await page.keyboard.press("g");
    await page.keyboard.press("j");
    await page.waitForURL("**/console/jobs");
  });

  test("of the menu set colours and the form of times, also for the next visit", async () => {
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
