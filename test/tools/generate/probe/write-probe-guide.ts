import type { Check } from "../../../../clients/cli/src/probe/check.ts";
import { SERVER_CHECKS } from "../../../../clients/cli/src/probe/mcp/probe-server.ts";
import { CHECKS } from "../../../../clients/cli/src/probe/probe.ts";
import { fillBlock } from "../fill-block.ts";

/** Writes the list of checks in `clients/cli/probe.md` from the probe's code; part of `npm run generate`. */
const PAGE = new URL("../../../../clients/cli/probe.md", import.meta.url);

const all: readonly Pick<Check, "id" | "fact" | "needs">[] = [...CHECKS, ...SERVER_CHECKS];
const checks = all.map(({ id, fact, needs }) => `- \`${id}\`${needs ? ` (\`${needs}\`)` : ""}: ${fact}`);

fillBlock(PAGE, "checks", checks);
