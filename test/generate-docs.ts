import { readFileSync, writeFileSync } from "node:fs";
import { VARIABLES } from "../server/src/config/config.ts";

/** Writes the table of settings into `server/README.md`; part of `npm run generate`. */
const README = new URL("../server/README.md", import.meta.url);
const SECTION = /(<!-- configuration:.*-->\n)[\s\S]*(<!-- \/configuration -->)/;

const rows = Object.entries(VARIABLES).map(
  ([name, { kind, fallback, help }]) =>
    `| \`${name}\` | ${kind.format} | ${describe(fallback, kind.optional ?? false)} | ${help} |`,
);
const table = ["| variable | value | default | what it does |", "|---|---|---|---|", ...rows].join("\n");
writeFileSync(README, readFileSync(README, "utf8").replace(SECTION, `$1\n${table}\n\n$2`));

function describe(fallback: unknown, optional: boolean): string {
  if (fallback === undefined) return optional ? "—" : "required";
  return `\`${fallback}\``;
}
