import { readFileSync, writeFileSync } from "node:fs";
import { factsOf, VARIABLES } from "../../../server/src/config/variables.ts";
import { MAX_WAIT_MS } from "../../../server/src/domain/limits.ts";
import { fillBlock } from "./fill-block.ts";

/** Writes the table of settings, and how long a balancer that stops lets calls finish; part of `npm run generate`. */
const PAGE = new URL("../../../server/settings.md", import.meta.url);

/** Returns a format without what the text above the table says. */
function short(format: string): string {
  return format.replace(
    /^a (?:whole number|duration) from |^an? (?=URL|origin)|, such as 250ms.*| such as .*:\/\/.*/g,
    "",
  );
}

const rows = Object.entries(VARIABLES).map(([name, schema]) => {
  const { format, fallback, isRequired, description, secret } = factsOf(schema);
  const byDefault = fallback === undefined ? (isRequired ? "required" : "—") : `\`${fallback}\``;
  return `| \`${name}\`${secret ? " †" : ""} | ${short(format)} | ${byDefault} | ${description} |`;
});
fillBlock(PAGE, "configuration", [
  "| variable | value | default | description |",
  "|---|---|---|---|",
  ...rows,
]);

const WAIT_S = MAX_WAIT_MS / 1000;
/** A Claim that waits ends in time. */
writeSeconds("deploy/haproxy/haproxy.cfg", /(?<=^ {2}hard-stop-after )\d+/m, WAIT_S + 15);
writeSeconds(
  "docker-compose.yml",
  /(?<=# Longer than hard-stop-after\.\n {4}stop_grace_period: )\d+/,
  WAIT_S + 20,
);

function writeSeconds(path: string, place: RegExp, seconds: number): void {
  const file = new URL(`../../../${path}`, import.meta.url);
  const text = readFileSync(file, "utf8");
  if (!place.test(text)) throw new Error(`${path} lacks ${place}`);
  writeFileSync(file, text.replace(place, String(seconds)));
}
