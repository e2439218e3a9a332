import { readFileSync, writeFileSync } from "node:fs";
import { MEMBERS } from "../../../../clients/cli/src/commands/probe.ts";
import { CHECKS } from "../../../../clients/cli/src/probe/probe.ts";

/** Writes the lists of `clients/cli/probe.md` from the probe's code; part of `npm run generate`. */
const PAGE = new URL("../../../../clients/cli/probe.md", import.meta.url);

const members = Object.entries(MEMBERS).map(
  ([name, { flag, meaning }]) => `- \`${name}\`, \`${flag}\`: ${meaning}`,
);
const checks = CHECKS.map(
  ({ id, fact, needs }) => `- \`${id}\`${needs ? ` (with \`${needs}\`)` : ""}: ${fact}`,
);

let page = readFileSync(PAGE, "utf8");
page = filled(page, "members", members);
page = filled(page, "checks", checks);
writeFileSync(PAGE, page);

function filled(text: string, name: string, lines: readonly string[]): string {
  const block = new RegExp(`(<!-- ${name}: .* -->\\n)[^]*(<!-- /${name} -->)`);
  if (!block.test(text)) throw new Error(`probe.md has no block ${name}`);
  return text.replace(block, (_, start: string, end: string) => `${start}\n${lines.join("\n")}\n\n${end}`);
}
