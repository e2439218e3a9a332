import axe, { type AxeResults, type RunOptions } from "axe-core";
import type { Page } from "playwright-core";
import { expect } from "vitest";

/** WCAG 2.2 AA with what axe regards as good practice. `preload` would request the style sheets once more. */
const OPTIONS: RunOptions = {
  runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
  resultTypes: ["violations"],
  preload: false,
};

/** The rules that depend on the colours. */
const OF_COLOURS: RunOptions = {
  ...OPTIONS,
  runOnly: { type: "rule", values: ["color-contrast", "link-in-text-block"] },
};

/**
 * Expects that axe finds no violation, in the light and in the dark colours. axe comes over the debugger's
 * protocol, which the page's content security policy does not concern.
 */
export async function expectAccessible(page: Page): Promise<void> {
  for (const [colorScheme, options] of [
    ["light", OPTIONS],
    ["dark", OF_COLOURS],
  ] as const) {
    await page.emulateMedia({ colorScheme });
    const violations = await findViolations(page, options);
    expect(violations, `axe, ${colorScheme}: ${page.url()}\n${violations.join("\n")}`).toEqual([]);
  }
}

async function findViolations(page: Page, options: RunOptions): Promise<readonly string[]> {
  const isThere = await page.evaluate(() => "axe" in globalThis);
  if (!isThere) await page.evaluate(axe.source);
  const { violations } = await page.evaluate(
    (given) => (globalThis as unknown as { axe: typeof axe }).axe.run(given) as Promise<AxeResults>,
    options,
  );
  return violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${help}\n${html.slice(0, 300)}\n${failureSummary}`),
  );
}
