import { readFileSync, writeFileSync } from "node:fs";
import { fileVariable } from "../../../server/src/core/config/secret-files.ts";
import { factsOf, VARIABLES } from "../../../server/src/core/config/variables.ts";

/** Writes the table of settings into `server/README.md`; part of `npm run generate`. */
const README = new URL("../../../server/README.md", import.meta.url);
const SECTION = /(<!-- configuration:.*-->\n)[\s\S]*(<!-- \/configuration -->)/;

const rows = Object.entries(VARIABLES).map(([name, schema]) => {
  const { format, fallback, isRequired, description, secret } = factsOf(schema);
  const byDefault = fallback === undefined ? (isRequired ? "required" : "—") : `\`${fallback}\``;
  const names = secret ? `\`${name}\` or \`${fileVariable(name)}\`` : `\`${name}\``;
  return `| ${names} | ${format} | ${byDefault} | ${description} |`;
});
const table = ["| variable | value | default | description |", "|---|---|---|---|", ...rows].join("\n");
writeFileSync(README, readFileSync(README, "utf8").replace(SECTION, `$1\n${table}\n\n$2`));
