import type { Page } from "playwright-core";
import { expect } from "vitest";
import { screenshot } from "./screenshots.ts";

/** What `observeShifts` keeps in the page. */
interface Observed {
  oncewardShifts?: string[];
}

/** Collects the page's layout shifts that no input caused. Runs in each page, before its own scripts. */
export function observeShifts(): void {
  const shifts: string[] = [];
  (globalThis as Observed).oncewardShifts = shifts;
  // A hundredth of the screen that moved by a hundredth of its height. The function has to be whole: it runs in the page.
  const SMALLEST_SHIFT = 0.0001;
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries() as unknown as readonly LayoutShift[]) {
      if (entry.hadRecentInput || entry.value < SMALLEST_SHIFT) continue;
      const moved = entry.sources.map(({ node }) =>
        node instanceof Element ? node.outerHTML.slice(0, 120) : "?",
      );
      shifts.push(`${entry.value.toFixed(4)} by ${moved.join(", ")}`);
    }
  });
  observer.observe({ type: "layout-shift", buffered: true });
}

/** An entry of the Layout Instability API, which TypeScript's library does not declare. */
interface LayoutShift extends PerformanceEntry {
  readonly value: number;
  readonly hadRecentInput: boolean;
  readonly sources: readonly { readonly node: Node | null }[];
}

/** Waits for two frames: shifts of a frame are told after it. */
async function untilPainted(page: Page): Promise<void> {
  await page.evaluate(
    () => new Promise<void>((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => resolve()))),
  );
}

/** Forgets what has moved, so that `expectNoShift` tells only what follows. */
export async function forgetShifts(page: Page): Promise<void> {
  await untilPainted(page);
  await page.evaluate(() => (globalThis as Observed).oncewardShifts?.splice(0));
}

/** Expects that nothing moved since the page was loaded, such as when data arrived. */
export async function expectNoShift(page: Page): Promise<void> {
  await untilPainted(page);
  const shifts = await page.evaluate(() => (globalThis as Observed).oncewardShifts);
  expect(shifts, `moved: ${page.url()}\n${shifts?.join("\n")}`).toEqual([]);
}

/** Expects that the page fits a narrow window, takes a picture there, and makes the window as wide as it was. */
export async function expectFits(page: Page, width: number, picture?: string): Promise<void> {
  const before = page.viewportSize() ?? { width: 1280, height: 800 };
  await page.setViewportSize({ ...before, width });
  await expectNoSidewaysScroll(page);
  if (picture !== undefined) await screenshot(page, picture);
  await page.setViewportSize(before);
}

/** Expects that the page itself does not scroll sideways: only parts of it, such as tables, may. */
export async function expectNoSidewaysScroll(page: Page): Promise<void> {
  const overflowing = await page.evaluate(() => {
    const { clientWidth, scrollWidth } = document.documentElement;
    if (scrollWidth <= clientWidth) return [];
    const wide = [...document.body.querySelectorAll("*")].filter(
      (element) => element.getBoundingClientRect().right > clientWidth + 1,
    );
    return [
      `${scrollWidth} px of ${clientWidth} px`,
      ...wide.slice(0, 5).map((each) => each.outerHTML.slice(0, 160)),
    ];
  });
  expect(overflowing, `wider than the window: ${page.url()}\n${overflowing.join("\n")}`).toEqual([]);
}
