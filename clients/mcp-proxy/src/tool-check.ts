import type { JSONRPCMessage } from "@modelcontextprotocol/sdk/types.js";
import { DERIVED_KEY_LENGTH, mayHaveArgument, withoutArgument } from "@onceward/client/agents";
import { UsageError } from "./failure.ts";
import { type ProxyPolicy, valueAt } from "./policy.ts";

/** More pages than a server needs for its tools. */
const MAX_PAGES = 100;

/** A tool, as the server lists it. */
export interface Tool {
  readonly name?: unknown;
  readonly inputSchema?: unknown;
}

/**
 * Compares a policy with the tools of the server, and returns these by their names.
 *
 * @param ask sends a `tools/list` with these parameters. Resolves with the server's answer.
 * @throws UsageError for a tool of the policy that the server does not have, which would pass unguarded under its real name; for a
 *   argument that the tool does not have, and for a tool of `resolve` that may write; the errors of `ask`.
 */
export async function checkTools(
  policy: ProxyPolicy,
  ask: (params: Readonly<Record<string, unknown>>) => Promise<JSONRPCMessage>,
): Promise<ReadonlyMap<string, Tool>> {
  const offered = await toolsOf(ask);
  const missing = [...policy.keys()].filter((name) => !offered.has(name));
  if (missing.length > 0) {
    const known = [...offered.keys()].join(", ");
    throw new UsageError(
      `The server has no tool ${missing.join(", ")}, which the policy names. It has: ${known}.`,
    );
  }
  for (const [name, { name: by, createdAt, ignore, keyArgument, resolve }] of policy) {
    const inputSchema = offered.get(name)?.inputSchema;
    if (keyArgument !== undefined) checkKeyArgument(name, keyArgument, inputSchema);
    const named = by.by === "run" ? { ignore } : { key: by.pointers, createdAt, ignore };
    for (const [member, pointers = []] of Object.entries(named))
      for (const pointer of [pointers].flat())
        if (!mayHaveArgument(inputSchema, pointer))
          throw new UsageError(`tools.${name}.${member} ${pointer} ${NOT_LISTED}`);
    if (resolve !== undefined && valueAt(offered.get(resolve.tool), "/annotations/readOnlyHint") !== true)
      throw new UsageError(
        `tools.${name}.resolve.tool must be a tool that the server lists with readOnlyHint, is ${resolve.tool}.`,
      );
  }
  return offered;
}

const NOT_LISTED = 'is not among the "properties" of the tool\'s inputSchema.';

function checkKeyArgument(tool: string, pointer: string, inputSchema: unknown): void {
  const path = `tools.${tool}.keyArgument ${pointer}`;
  const parent = pointer.slice(0, pointer.lastIndexOf("/")).replaceAll("/", "/properties/");
  // A tool for all calls of an API has an object of any members. At the top, a misspelt argument is still refused.
  const isOpen = Object(valueAt(inputSchema, parent)).additionalProperties === true;
  if (withoutArgument(inputSchema, pointer) === undefined && !isOpen)
    throw new UsageError(`${path} ${NOT_LISTED}`);
  const { type, maxLength, format } = Object(valueAt(inputSchema, pointer.replaceAll("/", "/properties/")));
  const isText = type === undefined || [type].flat().includes("string");
  if (!isText || maxLength < DERIVED_KEY_LENGTH || format === "uuid")
    throw new UsageError(`${path} does not take a text of ${DERIVED_KEY_LENGTH} characters.`);
}

/** By this member of `_meta`, the probe knows a guarded tool, whose argument for a key it may not see. */
const GUARDED = { "onceward/guarded": true };

/** Returns a server's result as the host sees it: guarded tools are marked, without the arguments that the proxy writes. */
export function withoutKeyArguments<Result extends object>(policy: ProxyPolicy, result: Result): Result {
  const { tools }: { tools?: unknown } = result;
  if (!Array.isArray(tools)) return result;
  const seen = tools.map((tool) => {
    const guarded = policy.get(`${tool?.name}`);
    if (guarded === undefined) return tool;
    const pointer = guarded.keyArgument;
    const inputSchema = pointer && withoutArgument(tool.inputSchema, pointer);
    return { ...tool, ...(inputSchema && { inputSchema }), _meta: { ...tool._meta, ...GUARDED } };
  });
  return { ...result, tools: seen };
}

async function toolsOf(
  ask: (params: Readonly<Record<string, unknown>>) => Promise<JSONRPCMessage>,
): Promise<ReadonlyMap<string, Tool>> {
  const offered = new Map<string, Tool>();
  let cursor: unknown;
  for (let page = 0; page < MAX_PAGES; page++) {
    const answer = await ask(cursor === undefined ? {} : { cursor });
    if (!("result" in answer)) throw new UsageError(`The server does not list its tools: ${textOf(answer)}`);
    const { tools, nextCursor } = answer.result;
    if (!Array.isArray(tools)) throw new UsageError("The server's list of tools has no tools.");
    for (const tool of tools) if (typeof tool?.name === "string") offered.set(tool.name, tool);
    if (nextCursor === undefined) return offered;
    cursor = nextCursor;
  }
  throw new UsageError(`The server's list of tools has more than ${MAX_PAGES} pages.`);
}

function textOf(answer: JSONRPCMessage): string {
  return "error" in answer ? answer.error.message : "it gave no answer.";
}
