import { readFile } from "node:fs/promises";
import { createOnceward } from "@onceward/client";
import { type Command, InvalidArgumentError } from "commander";
import { type GlobalOptions, resolveCredentials } from "../credentials.ts";
import { messageOf, UsageError } from "../failure.ts";
import type { Host } from "../host.ts";
import { checkExactNumbers } from "../mcp/exact-json.ts";
import { parsePolicy } from "../mcp/policy.ts";
import type { UpstreamAddress } from "../mcp/upstream.ts";
import { command } from "./group.ts";

/** The options of `onceward mcp-proxy`. */
interface ProxyFlags extends GlobalOptions {
  readonly policy: string;
  readonly url?: URL;
  readonly headerEnv?: readonly (readonly [name: string, variable: string])[];
}

/** Variables that are this program's, not the server's. */
const OWN_VARIABLES = ["ONCEWARD_API_KEY", "ONCEWARD_ADDRESS"];

/** Returns `onceward mcp-proxy`: guards the tools of a server of Model Context Protocol. */
export function mcpProxyCommand(host: Host): Command {
  return command(
    "mcp-proxy [server...]",
    "Guards the tools of a Model Context Protocol server: a call that is repeated does not run twice.",
    "mcp-proxy --policy tools.json -- npx payments-mcp-server",
    "mcp-proxy --policy tools.json --url https://mcp.example/mcp --header-env Authorization=MCP_AUTHORIZATION",
  )
    .requiredOption("--policy <file>", "the JSON file that names the guarded tools")
    .option("--url <url>", "the server's address (streamable HTTP), instead of a command", parseUrl)
    .option(
      "--header-env <name=variable>",
      "send a header with the value of an environment variable; may be repeated",
      parseHeader,
    )
    .action(async (server: readonly string[], _options: object, self: Command) => {
      const flags: ProxyFlags = self.optsWithGlobals();
      if (flags.apiKeyStdin)
        throw new UsageError("--api-key-stdin can't be used: standard input is the host's.");
      const upstream = upstreamOf(host, flags, server);
      checkExactNumbers();
      const policy = parsePolicy(await readPolicy(flags.policy));
      const onceward = createOnceward({
        ...(await resolveCredentials(host, flags, "caller")),
        owner: "mcp-proxy",
      });
      try {
        // Loaded here: the protocol's SDK is larger than the rest of this program.
        const { runProxy } = await import("../mcp/proxy.ts");
        await runProxy({ onceward, policy, upstream, warn: (text) => host.warn(text) });
      } finally {
        await onceward.close({ timeoutMs: 0 });
      }
    });
}

function upstreamOf(
  host: Host,
  { url, headerEnv = [] }: ProxyFlags,
  server: readonly string[],
): UpstreamAddress {
  const [program, ...args] = server;
  if ((program === undefined) === (url === undefined))
    throw new UsageError("Give either a server's command after --, or its --url.");
  if (url !== undefined) {
    const headers = headerEnv.map(([name, variable]) => {
      const value = host.env[variable];
      if (value === undefined) throw new UsageError(`--header-env: ${variable} is not set.`);
      return [name, value];
    });
    return { kind: "url", url, headers: Object.fromEntries(headers) };
  }
  if (headerEnv.length > 0) throw new UsageError("--header-env is for --url.");
  const env = Object.entries(host.env).flatMap(([name, value]) =>
    value === undefined || OWN_VARIABLES.includes(name) ? [] : [[name, value]],
  );
  return { kind: "command", command: `${program}`, args, env: Object.fromEntries(env) };
}

async function readPolicy(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    throw new UsageError(`The policy can't be read: ${messageOf(error)}.`);
  }
}

function parseUrl(text: string): URL {
  const url = URL.parse(text);
  if (url?.protocol === "http:" || url?.protocol === "https:") return url;
  throw new InvalidArgumentError("It must be an http or https URL.");
}

function parseHeader(text: string, earlier: readonly unknown[] = []): readonly unknown[] {
  const [, name, variable] = /^([\w-]+)=(\w+)$/.exec(text) ?? [];
  if (name === undefined) throw new InvalidArgumentError("It must be like Authorization=MCP_AUTHORIZATION.");
  return [...earlier, [name, variable]];
}
