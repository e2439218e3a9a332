import { mkdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";

/** Ignored by git. */
const FOLDER = fileURLToPath(new URL("../../console/screenshots/", import.meta.url));
const README_FOLDER = fileURLToPath(new URL("../../../clients/console/screenshots/", import.meta.url));

/** Whether this run writes pictures: Chromium takes longer to draw them than most tests take. */
export function writesPictures(): boolean {
  return process.env.ONCEWARD_WRITE_SCREENSHOTS === "true";
}

/**
 * Writes a picture of the whole page for reviewers, in both colour schemes: `NAME-light.png` and `NAME-dark.png`, if this run writes
 * pictures.
 */
export async function screenshot(page: Page, name: string): Promise<void> {
  if (!writesPictures()) return;
  await mkdir(FOLDER, { recursive: true });
  const seen = page.viewportSize() ?? { width: 0, height: 0 };
  // Parts that stay in sight have their place on the whole page; a dialog is in the middle of what is seen.
  const height = await page.evaluate(() => {
    return document.querySelector("dialog[open]") ? innerHeight : document.documentElement.scrollHeight;
  });
  await page.setViewportSize({ ...seen, height });
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    await page.screenshot({ path: `${FOLDER}${name}-${colorScheme}.png`, fullPage: true });
  }
  await page.setViewportSize(seen);
}

/** Writes the upper part of the page, as README shows it, if this run writes pictures. */
export async function readmeScreenshot(page: Page, name: string, height: number): Promise<void> {
  if (!writesPictures()) return;
  await mkdir(README_FOLDER, { recursive: true });
  await page.emulateMedia({ colorScheme: "light" });
  await page.screenshot({ path: `${README_FOLDER}${name}.png`, clip: { x: 0, y: 0, width: 1280, height } });
}
