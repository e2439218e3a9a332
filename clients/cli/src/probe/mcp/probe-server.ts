import { UsageError } from "../../failure.ts";
import { Budget, DEFAULT_BOUNDS } from "../budget.ts";
import { simpleKey } from "../check.ts";
import { quoted, withCut } from "../curl.ts";
import type { Changes, Endpoint, ProbeRequest } from "../endpoint.ts";
import { members } from "../endpoint-fields.ts";
import { isNamed, type ProbeOptions, type Report, runChecks, selected } from "../probe.ts";
import type { Sender } from "../scene.ts";
import { skipped } from "../verdict.ts";
import { CALLS } from "./calls.ts";
import { keysOf, LIST, type Tool } from "./lint.ts";
import { McpServer } from "./server.ts";

/** Shown for the restart of a process that the probe has started. */
const KILL = ["kill", "-KILL", "the server's process"];

/** All checks of a server, in the order in which they run. The guide's list is derived from this table. */
export const SERVER_CHECKS = [...LIST, ...CALLS];

/**
 * Checks the list of a server's tools, and then calls each tool that the endpoint names, if it allows writes. Returns a report of the
 * list, and one of each tool that was called.
 *
 * @throws NotProbedError if the server refuses to list its tools, or the plain call of one. NoAnswerError, BoundReached if it can't
 *   list them. UsageError for a tool that it does not have, or that can't be called twice. Error if effects can't be counted.
 */
export async function probeServer(
  sdk: typeof import("@onceward/mcp-proxy"),
  endpoint: Endpoint,
  options: ProbeOptions,
): Promise<readonly Report[]> {
  const budget = new Budget(options.bounds ?? DEFAULT_BOUNDS);
  const server = new McpServer(sdk, endpoint, budget, options.env);
  try {
    const tools = await server.listTools();
    const called = endpoint.allowWrites ? endpoint.tools.map((name) => toolOf(endpoint, tools, name)) : [];
    const judged = selected(LIST, options).map((check) => ({
      check,
      verdict: isNamed(check.id, endpoint.unclaimed) ? skipped("not claimed") : check.judge(tools),
      commands: [],
    }));
    const why = skipped(endpoint.tools.length === 0 ? "needs tools" : "needs allowWrites");
    const left = called.length > 0 ? [] : selected(CALLS, options);
    const findings = [...judged, ...left.map((check) => ({ check, verdict: why, commands: [] }))];
    const reports: Report[] = [
      { url: endpoint.url, effects: "not counted", findings, requests: budget.requests },
    ];
    for (const { tool, pointer } of called) {
      const subject = {
        ...endpoint,
        url: `${endpoint.url}: ${tool.name}`,
        ...(server.isProcess && { restartCommand: endpoint.restartCommand ?? KILL }),
      };
      const sender = senderOf(server, endpoint, tool, pointer);
      const report = await runChecks(CALLS, subject, { ...options, budget, sender });
      const byName = endpoint.keyArgument === undefined ? ", by its name" : "";
      reports.push({ ...report, key: pointer === undefined ? "the arguments" : `${pointer}${byName}` });
    }
    return reports;
  } finally {
    await server.close();
  }
}

/** Returns a tool, and where its key is; undefined: the arguments are the key. */
function toolOf({ keyArgument, body }: Endpoint, tools: readonly Tool[], name: string) {
  const tool = tools.find((one) => one.name === name);
  if (tool === undefined) throw new UsageError(`The server has no tool ${name}.`);
  const pointer = keyArgument ?? keysOf(tool)[0]?.pointer;
  if (pointer === undefined && !body.includes("{{id}}"))
    throw new UsageError(
      `The key of ${name} is unknown: name it with --key-argument, or put {{id}} into --arguments.`,
    );
  return { tool, pointer };
}

function senderOf(server: McpServer, endpoint: Endpoint, tool: Tool, pointer: string | undefined): Sender {
  return {
    request: (changes) => requestOf(endpoint, tool, pointer, changes),
    show: (request, cut) => withCut(commandOf(endpoint, request), cut),
    send: (request) => server.send(request),
    cut: (request, cut) => server.cut(request, cut),
    restart: () => server.restart(),
  };
}

/** Returns a call of a new operation, whose arguments are the body. Without an argument for its key, the key is `{{id}}`. */
function requestOf(
  { body }: Endpoint,
  { name }: Tool,
  pointer: string | undefined,
  changes: Changes = {},
): ProbeRequest {
  const key = String(changes.key ?? simpleKey());
  const id = pointer === undefined ? key : simpleKey();
  const args = argumentsOf((changes.body ?? body).replaceAll("{{id}}", id));
  if (pointer !== undefined) put(args, pointer, key);
  return { url: name, method: "tools/call", headers: {}, body: JSON.stringify(args) };
}

function argumentsOf(text: string): Record<string, unknown> {
  try {
    return { ...members(JSON.parse(text)) };
  } catch {
    throw new UsageError("A tool's arguments must be a JSON object.");
  }
}

/** Writes a value to the place of a JSON Pointer. */
function put(into: Record<string, unknown>, pointer: string, value: string): void {
  const names = pointer.split("/").map((name) => name.replaceAll("~1", "/").replaceAll("~0", "~"));
  const last = names.pop() ?? "";
  let place = into;
  for (const name of names.slice(1)) {
    if (!Object.hasOwn(place, name)) place[name] = {};
    place = place[name] as Record<string, unknown>;
  }
  place[last] = value;
}

/** Returns a shell command that makes the call in a session of its own. */
function commandOf({ mcp = "", headers }: Endpoint, { url, body }: ProbeRequest): string {
  const isUrl = /^https?:/.test(mcp);
  const named = Object.entries(headers).map(([name, value]) => `--header ${quoted(`${name}: ${value}`)}`);
  const given = Object.entries(JSON.parse(body)).map(([name, value]) => {
    const text = typeof value === "string" ? value : JSON.stringify(value);
    return `--tool-arg ${quoted(`${name}=${text}`)}`;
  });
  return [
    "npx @modelcontextprotocol/inspector --cli",
    ...(isUrl ? [quoted(mcp), "--transport http", ...named] : [mcp]),
    `--method tools/call --tool-name ${quoted(url)}`,
    ...given,
  ].join(" ");
}
