import { CHECKS } from "../../../../clients/cli/src/probe/probe.ts";
import { fillBlock } from "../fill-block.ts";

/** Writes the list of checks in `clients/cli/probe.md` from the probe's code; part of `npm run generate`. */
const PAGE = new URL("../../../../clients/cli/probe.md", import.meta.url);

const checks = CHECKS.map(
  ({ id, fact, needs }) => `- \`${id}\`${needs ? ` (with \`${needs}\`)` : ""}: ${fact}`,
);

fillBlock(PAGE, "checks", checks);
