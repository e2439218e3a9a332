import { MEMBERS } from "../../../../clients/cli/src/commands/probe.ts";
import { CHECKS } from "../../../../clients/cli/src/probe/probe.ts";
import { fillBlock } from "../fill-block.ts";

/** Writes the lists of `clients/cli/probe.md` from the probe's code; part of `npm run generate`. */
const PAGE = new URL("../../../../clients/cli/probe.md", import.meta.url);

const members = Object.entries(MEMBERS).map(
  ([name, { flag, meaning }]) => `- \`${name}\`, \`${flag}\`: ${meaning}`,
);
const checks = CHECKS.map(
  ({ id, fact, needs }) => `- \`${id}\`${needs ? ` (with \`${needs}\`)` : ""}: ${fact}`,
);

fillBlock(PAGE, "members", members);
fillBlock(PAGE, "checks", checks);
