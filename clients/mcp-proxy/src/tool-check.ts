import type { JSONRPCMessage } from "@modelcontextprotocol/sdk/types.js";
import { messageOf, UsageError } from "./failure.ts";
import type { ProxyPolicy } from "./policy.ts";

/** More pages than a server needs for its tools. */
const MAX_PAGES = 100;

/**
 * Compares a policy with the tools of the server, and returns a line that lists the guarded tools.
 *
 * @param ask sends a `tools/list` with these parameters. Resolves with the server's answer.
 * @throws UsageError for a tool of the policy that the server does not have, which would pass unguarded under its real name.
 */
export async function checkTools(
  policy: ProxyPolicy,
  ask: (params: Readonly<Record<string, unknown>>) => Promise<JSONRPCMessage>,
): Promise<string> {
  const offered = await toolNames(ask);
  const missing = [...policy.keys()].filter((name) => !offered.has(name));
  if (missing.length > 0) {
    const known = [...offered].join(", ");
    throw new UsageError(
      `The server has no tool ${missing.join(", ")}, which the policy names. It has: ${known}.`,
    );
  }
  const passed = offered.size - policy.size;
  return `onceward: guarded: ${[...policy.keys()].join(", ")}; ${passed} other tools pass through\n`;
}

async function toolNames(
  ask: (params: Readonly<Record<string, unknown>>) => Promise<JSONRPCMessage>,
): Promise<ReadonlySet<string>> {
  const names = new Set<string>();
  let cursor: unknown;
  for (let page = 0; page < MAX_PAGES; page++) {
    const answer = await ask(cursor === undefined ? {} : { cursor }).catch((error) => {
      throw new UsageError(`The server does not list its tools: ${messageOf(error)}`);
    });
    if (!("result" in answer)) throw new UsageError(`The server does not list its tools: ${textOf(answer)}`);
    const { tools, nextCursor } = answer.result;
    if (!Array.isArray(tools)) throw new UsageError("The server's list of tools has no tools.");
    for (const tool of tools) if (typeof tool?.name === "string") names.add(tool.name);
    if (nextCursor === undefined) return names;
    cursor = nextCursor;
  }
  throw new UsageError(`The server's list of tools has more than ${MAX_PAGES} pages.`);
}

function textOf(answer: JSONRPCMessage): string {
  return "error" in answer ? answer.error.message : "it gave no answer.";
}
