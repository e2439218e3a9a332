import { readFileSync, writeFileSync } from "node:fs";

/**
 * Writes lines between the comments `<!-- NAME: … -->` and `<!-- /NAME -->` of a page.
 *
 * @throws Error if the page lacks them.
 */
export function fillBlock(page: URL, name: string, lines: readonly string[]): void {
  const text = readFileSync(page, "utf8");
  const block = new RegExp(`(<!-- ${name}: .* -->\\n)[^]*(<!-- /${name} -->)`);
  if (!block.test(text)) throw new Error(`${page.pathname} has no block ${name}`);
  const filled = (_: string, start: string, end: string) => `${start}\n${lines.join("\n")}\n\n${end}`;
  writeFileSync(page, text.replace(block, filled));
}
