import { createRequire } from "node:module";
import { createOnceward, OncewardError } from "@onceward/client";
import { Command, CommanderError, InvalidArgumentError } from "commander";
import { type CredentialFlags, OWN_VARIABLES, resolveCredentials } from "./credentials.ts";
import { checkExactNumbers } from "./exact-json.ts";
import { messageOf, UsageError } from "./failure.ts";
import { parsePolicy } from "./policy.ts";
import { readTextFile } from "./text-file.ts";
import type { UpstreamAddress } from "./upstream.ts";

/** The program's view of its process. Only `main.ts` uses the real one; messages use standard input and output beside it. */
export interface Host {
  /** The arguments after the program's name. */
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Writes help and the version, to standard output. */
  write(text: string): void;
  /** Writes lines for people, to standard error. */
  warn(text: string): void;
}

interface Flags extends CredentialFlags {
  readonly policy: string;
  readonly url?: URL;
  readonly headerEnv?: readonly (readonly [name: string, variable: string])[];
}

/** Large enough for hundreds of tools. */
const MAX_POLICY_BYTES = 1024 * 1024;
/** Exit codes; README.md explains them. */
const EXIT = { ok: 0, failed: 1, usage: 2 } as const;

const { version }: { readonly version: string } = createRequire(import.meta.url)("../package.json");

const AFTER_HELP = `
Environment:
  ONCEWARD_ADDRESS, ONCEWARD_API_KEY   instead of --address and --api-key-file

Examples:
  onceward-mcp-proxy --policy tools.json -- npx payments-mcp-server
  onceward-mcp-proxy --policy tools.json --url https://mcp.example/mcp --header-env Authorization=MCP_AUTHORIZATION`;

/** Runs the proxy until the host or the server closes. Resolves with the exit code; never rejects. */
export async function runProgram(terminal: Host): Promise<number> {
  const host: Host = { ...terminal, warn: (text) => terminal.warn(printable(text)) };
  try {
    await createProgram(host).parseAsync(host.args, { from: "user" });
    return EXIT.ok;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    host.warn(`onceward: ${describe(error)}\n`);
    // The client refuses an option, such as an invalid address, with an OncewardError.
    return error instanceof UsageError || error instanceof OncewardError ? EXIT.usage : EXIT.failed;
  }
}

function createProgram(host: Host): Command {
  return new Command("onceward-mcp-proxy")
    .description(
      "Guards the tools of a Model Context Protocol server: a call that is repeated does not run twice.",
    )
    .argument("[server...]", "the server's command, after --")
    .version(version, "--version", "print the version")
    .requiredOption("--policy <file>", "the JSON file that names the guarded tools")
    .option("--url <url>", "the server's address (streamable HTTP), instead of a command", parseUrl)
    .option(
      "--header-env <name=variable>",
      "send a header with the value of an environment variable; may be repeated",
      parseHeader,
    )
    .option("--address <url>", "the address of Onceward, such as http://localhost:50051")
    .option("--api-key-file <file>", "the file with the API key, of the role CALLER")
    .addHelpText("after", AFTER_HELP)
    .configureOutput({
      writeOut: host.write,
      writeErr: host.warn,
      outputError: (text, write) => write(text.replace(/^error: /, "onceward: ")),
    })
    .exitOverride()
    .action((server: readonly string[], flags: Flags) => runGuarded(host, server, flags));
}

async function runGuarded(host: Host, server: readonly string[], flags: Flags): Promise<void> {
  const upstream = upstreamOf(host, flags, server);
  checkExactNumbers();
  const policy = parsePolicy(await readTextFile(flags.policy, "policy", MAX_POLICY_BYTES));
  const onceward = createOnceward({
    ...(await resolveCredentials(flags, host.env)),
    owner: "mcp-proxy",
  });
  try {
    // Loaded here: help and errors need nothing of the protocol's SDK.
    const { runProxy } = await import("./proxy.ts");
    await runProxy({ onceward, policy, upstream, warn: (text) => host.warn(text) });
  } finally {
    await onceward.close({ timeoutMs: 0 });
  }
}

function upstreamOf(
  { env }: Host,
  { url, headerEnv = [] }: Flags,
  server: readonly string[],
): UpstreamAddress {
  const [command, ...args] = server;
  if (url !== undefined && command === undefined) {
    const headers = headerEnv.map(([name, variable]) => {
      const value = env[variable];
      if (value === undefined) throw new UsageError(`--header-env: ${variable} is not set.`);
      return [name, value];
    });
    return { kind: "url", url, headers: Object.fromEntries(headers) };
  }
  if (url !== undefined || command === undefined)
    throw new UsageError("Give either a server's command after --, or its --url.");
  if (headerEnv.length > 0) throw new UsageError("--header-env is for --url.");
  const passed = Object.entries(env).flatMap(([name, value]) =>
    value === undefined || OWN_VARIABLES.includes(name) ? [] : [[name, value]],
  );
  return { kind: "command", command, args, env: Object.fromEntries(passed) };
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

function describe(error: unknown): string {
  if (!(error instanceof OncewardError) || error.violations.length === 0) return messageOf(error);
  return error.violations.map(({ field, description }) => `${field} ${description}`).join("; ");
}

/**
 * Returns a text with each character that controls a terminal, but line breaks and tabs, replaced by U+FFFD: a server may
 * have written it.
 */
function printable(text: string): string {
  return text.replace(/(?![\n\t])[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu, "\u{fffd}");
}
