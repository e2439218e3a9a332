import { withArgument } from "@onceward/client/agents";
import { UsageError } from "../../failure.ts";
import { Budget, DEFAULT_BOUNDS } from "../budget.ts";
import { simpleKey } from "../check.ts";
import { quoted, withCut } from "../curl.ts";
import type { Changes, Endpoint, ProbeRequest } from "../endpoint.ts";
import { isNamed, type ProbeOptions, type Report, runChecks, selected } from "../probe.ts";
import type { Sender } from "../scene.ts";
import { skipped } from "../verdict.ts";
import { CALLS } from "./calls.ts";
import { keysOf, LIST, type Tool } from "./lint.ts";
import { isUrl, McpServer } from "./server.ts";

/** All checks of a server, in the order in which they run. The guide's list is derived from this table. */
export const SERVER_CHECKS = [...LIST, ...CALLS];

/** Shown for the restart of a process that the probe has started. */
const KILL = ["kill", "-KILL", "the server's process"];

/**
 * Checks the list of a server's tools, and then calls each tool that the endpoint names. Returns a report of the
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
  const { url, mcp = "", restartCommand = isUrl(mcp) ? undefined : KILL } = endpoint;
  try {
    const tools = await server.listTools();
    const called = endpoint.tools.map((name) => toolOf(endpoint, tools, name));
    const judged = selected(called.length > 0 ? LIST : SERVER_CHECKS, options).map((check) => {
      const verdict = "judge" in check ? check.judge(tools) : skipped("needs tools");
      const isClaimed = !isNamed(check.id, endpoint.unclaimed);
      return { check, verdict: isClaimed ? verdict : skipped("not claimed"), commands: [] };
    });
    const reports: Report[] = [{ url, effects: "not counted", findings: judged, requests: budget.requests }];
    for (const { name, pointer } of called) {
      const tool = { ...endpoint, url: `${url}: ${name}`, ...(restartCommand && { restartCommand }) };
      const sender: Sender = {
        request: (changes) => requestOf(endpoint, name, pointer, changes),
        show: (request, cut) => withCut(commandOf(endpoint, request), cut),
        send: (request) => server.send(request),
        cut: (request, cut) => server.cut(request, cut),
        restart: () => server.restart(),
      };
      const report = await runChecks(CALLS, tool, { ...options, budget, sender });
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
  return { name, pointer };
}

/** Returns a call of a new operation, whose arguments are the body. Without an argument for its key, the key is `{{id}}`. */
function requestOf(
  endpoint: Endpoint,
  url: string,
  pointer: string | undefined,
  { key = simpleKey(), body = endpoint.body }: Changes = {},
): ProbeRequest {
  const text = body.replaceAll("{{id}}", pointer === undefined ? String(key) : simpleKey());
  let filled: unknown;
  try {
    const args: unknown = JSON.parse(text);
    filled = pointer === undefined ? args : withArgument(args, pointer, key);
  } catch {
    throw new UsageError("A tool's arguments must be a JSON object.");
  }
  return { url, method: "tools/call", headers: {}, body: JSON.stringify(filled) };
}

/** Returns a shell command that makes the call in a session of its own. */
function commandOf({ mcp = "", headers }: Endpoint, { url, body }: ProbeRequest): string {
  const option = (name: string) => (text: string) => `--${name} ${quoted(text)}`;
  const named = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  const given = Object.entries(JSON.parse(body)).map(
    ([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`,
  );
  return [
    `npx @modelcontextprotocol/inspector --cli ${isUrl(mcp) ? `${quoted(mcp)} --transport http` : mcp}`,
    ...named.map(option("header")),
    ...["tools/call"].map(option("method")),
    ...[url].map(option("tool-name")),
    ...given.map(option("tool-arg")),
  ].join(" ");
}
