import { createReadStream } from "node:fs";
import { text } from "node:stream/consumers";
import { type Command, InvalidArgumentError } from "commander";
import type { GlobalOptions } from "../credentials.ts";
import { EXIT, Outcome, UsageError } from "../failure.ts";
import type { Host } from "../host.ts";
import { loadOptional } from "../optional-package.ts";
import { Output } from "../output.ts";
import type { Endpoint } from "../probe/endpoint.ts";
import type { Report } from "../probe/probe.ts";
import { command, several } from "./group.ts";

interface Flags {
  readonly config?: string;
  readonly dryRun?: true;
  readonly only?: readonly string[];
  readonly maxRequests: number;
  readonly maxBytes: number;
  readonly maxSeconds: number;
  readonly rate: number;
  readonly timeout: number;
}

/** An option that is also a member of a configured endpoint, with its meaning. */
interface MemberFlag {
  readonly flag: string;
  readonly meaning: string;
  readonly parse?: (value: string, before: never) => unknown;
}

/** The members of an endpoint. The guide's list is derived from this table. */
const MEMBERS: Readonly<Record<keyof Endpoint, MemberFlag>> = {
  url: { flag: "--url <url>", meaning: "the endpoint's URL" },
  mcp: {
    flag: "--mcp <server>",
    meaning: "instead of --url, a server of Model Context Protocol: its URL, or the command that starts it",
  },
  tools: { flag: "--tools <name>", meaning: "a tool of --mcp that is called", parse: several },
  allowWrites: {
    flag: "--allow-writes",
    meaning: "call the tools; without both, only their list is checked",
  },
  keyArgument: {
    flag: "--key-argument <pointer>",
    meaning: "the tools' argument with the key, such as /idempotency_key; by default found by its name",
  },
  method: { flag: "--method <method>", meaning: "POST (default), PUT, PATCH or DELETE" },
  headers: {
    flag: "--headers <name: value>",
    meaning: `a header of the request, such as content-type; \${NAME} in it is an environment variable`,
    parse: parseHeader,
  },
  body: {
    flag: "--arguments, --body <text>",
    meaning:
      "the request's body, or a tool's arguments; {{id}} in it becomes a value of its own for each operation",
  },
  keyHeader: { flag: "--key-header <name>", meaning: "the header with the key; by default Idempotency-Key" },
  keyRequired: { flag: "--key-required", meaning: "a request without a key must be refused" },
  otherBody: {
    flag: "--other-arguments, --other-body <text>",
    meaning: "another valid body, for one key with two bodies",
  },
  otherPath: { flag: "--other-path <path>", meaning: "another path that accepts the same request" },
  otherMethod: { flag: "--other-method <method>", meaning: "another method that the endpoint accepts" },
  otherHeaders: {
    flag: "--other-headers <name: value>",
    meaning: "a header of a second caller's request, instead of all of the first one's",
    parse: parseHeader,
  },
  invalidBody: { flag: "--invalid-body <text>", meaning: "a body that the endpoint refuses with a 4xx" },
  failHeaders: {
    flag: "--fail-headers <name: value>",
    meaning: "a header with which the endpoint answers 5xx and has no effect; the retry is sent without it",
    parse: parseHeader,
  },
  replayHeader: { flag: "--replay-header <name>", meaning: "the header that marks a replay" },
  countUrl: {
    flag: "--count-url <url>",
    meaning: "a URL that answers with the number of effects, or with a JSON array of them",
  },
  countCommand: {
    flag: "--count-command <command>",
    meaning: "a command that prints the number of effects; in a file, a list of program and arguments",
    parse: (value) => ["sh", "-c", value],
  },
  countSql: {
    flag: "--count-sql <query>",
    meaning: "a query of the number of effects, which psql runs with its own environment, such as PGDATABASE",
  },
  restartCommand: {
    flag: "--restart-command <command>",
    meaning: "a command that restarts the service, and ends once it serves again",
    parse: (value) => ["sh", "-c", value],
  },
  lateMs: {
    flag: "--late-ms <ms>",
    meaning: "how long after the first answer the late retry is sent; by default 2000",
    parse: parseNumber,
  },
  unclaimed: {
    flag: "--unclaimed <check>",
    meaning: "a check, or a family of checks, whose promise the API does not make",
    parse: several,
  },
};

/** Returns `onceward probe`: whether an HTTP API, or a tool of a server, keeps what idempotency keys promise. */
export function probeCommand(host: Host): Command {
  const made = command(
    "probe",
    "Sends requests with idempotency keys to any HTTP API, or calls tools of a server of Model Context Protocol, and shows which promises it keeps. Point it at a test system: its operations are real. Exits with 6 if a check failed, 5 if a bound ended the probe early, 3 if the API does not answer, 1 if it refuses the plain request.",
    `probe --url http://localhost:3000/charges --headers 'content-type: application/json' --body '{"amount":1}'`,
    `probe --mcp 'npx payments-mcp-server' --tools refund --allow-writes --arguments '{"order":"{{id}}"}'`,
    "probe --config probe.yaml --json",
    "probe --config probe.yaml --dry-run",
  )
    .option("--config <file>", "the endpoints, in YAML or JSON, instead of the options of one")
    .option("--dry-run", "show each request as a shell command, and send nothing")
    .option("--only <check>", "only this check or family of checks; several times for several", several)
    .option("--max-requests <count>", "at most so many requests for each endpoint", parseNumber, 1000)
    .option("--max-bytes <bytes>", "at most so many bytes of bodies", parseNumber, 16 * 1024 * 1024)
    .option("--max-seconds <seconds>", "at most so long for each endpoint", parseNumber, 180)
    .option("--rate <count>", "at most so many requests in a second", parseNumber, 100)
    .option("--timeout <ms>", "how long a request may take", parseNumber, 10_000);
  for (const { flag, meaning, parse } of Object.values(MEMBERS)) {
    if (parse === undefined) made.option(flag, meaning);
    else made.option(flag, meaning, parse as (value: string, before: unknown) => unknown);
  }
  return made.action(async (flags: Flags, self: Command) => {
    const globals: GlobalOptions = self.optsWithGlobals();
    await runProbe(host, flags, new Output(host, globals.json === true));
  });
}

async function runProbe(host: Host, flags: Flags, output: Output): Promise<void> {
  // Loaded when they are needed: the other commands start faster.
  const [
    { probe, NotProbedError, CHECKS, isNamed },
    { probeServer, SERVER_CHECKS },
    { NoAnswerError },
    { BoundReached },
    { reportJson, reportText },
  ] = await Promise.all([
    import("../probe/probe.ts"),
    import("../probe/mcp/probe-server.ts"),
    import("../probe/exchange.ts"),
    import("../probe/budget.ts"),
    import("../probe/report.ts"),
  ]);
  const only = flags.only;
  const unknown = only?.find((name) => ![...CHECKS, ...SERVER_CHECKS].some(({ id }) => isNamed(id, [name])));
  if (unknown !== undefined) throw new UsageError(`There is no check ${unknown}.`);
  const options = {
    env: host.env,
    bounds: {
      requests: flags.maxRequests,
      bytes: flags.maxBytes,
      seconds: flags.maxSeconds,
      perSecond: flags.rate,
      requestMs: flags.timeout,
    },
    ...(only !== undefined && { only }),
    ...(flags.dryRun && { dryRun: (line: string) => host.write(`${line}\n`) }),
  };
  const reports: Report[] = [];
  for (const endpoint of await endpointsOf(flags)) {
    try {
      if (endpoint.mcp === undefined) reports.push(await probe(endpoint, options));
      else {
        if (flags.dryRun) throw new UsageError("--dry-run is for --url.");
        const sdk = await loadOptional("@onceward/mcp-proxy", () => import("@onceward/mcp-proxy"));
        reports.push(...(await probeServer(sdk, endpoint, options)));
      }
    } catch (error) {
      if (error instanceof NotProbedError) throw new Outcome(EXIT.refused, error.message);
      if (error instanceof NoAnswerError)
        throw new Outcome(EXIT.unavailable, `${endpoint.url} does not answer: ${error.message}`);
      if (error instanceof BoundReached)
        throw new Outcome(EXIT.warnings, `A bound ended the probe: ${error.message}.`);
      throw error;
    }
  }
  if (flags.dryRun) return;
  output.value(reportJson(reports), () => reportText(reports));
  const exitCode = exitCodeOf(reports);
  if (exitCode !== EXIT.ok) throw new Outcome(exitCode, "");
}

async function endpointsOf(flags: Flags): Promise<readonly Endpoint[]> {
  const [{ MAX_CONFIG_BYTES, parseConfig }, { readEndpoint }] = await Promise.all([
    import("../probe/config.ts"),
    import("../probe/endpoint.ts"),
  ]);
  const members = Object.entries(flags).filter(([name]) => Object.hasOwn(MEMBERS, name));
  if (flags.config === undefined) return [readEndpoint(Object.fromEntries(members))];
  if (members.length > 0) throw new UsageError(`Give --config or ${MEMBERS.url.flag}, not both.`);
  // One byte more than allowed, which the parser refuses.
  const file = createReadStream(flags.config, { end: MAX_CONFIG_BYTES });
  const content = await text(file).catch((error: Error) => {
    throw new UsageError(`The configuration can't be read: ${error.message}.`);
  });
  return parseConfig(content);
}

function exitCodeOf(reports: readonly Report[]) {
  const verdicts = reports.flatMap(({ findings }) => findings.map(({ verdict }) => verdict));
  if (verdicts.some(({ kind }) => kind === "failed")) return EXIT.errors;
  return verdicts.some((verdict) => verdict.kind === "unfinished") ? EXIT.warnings : EXIT.ok;
}

function parseHeader(value: string, before: Readonly<Record<string, string>> = {}) {
  const [, name, content] = /^([^:]+):[ \t]*(.*)$/.exec(value) ?? [];
  if (name === undefined || content === undefined)
    throw new InvalidArgumentError("It must be a name, a colon and a value.");
  return { ...before, [name]: content };
}

function parseNumber(value: string): number {
  if (/^\d{1,9}$/.test(value)) return Number(value);
  throw new InvalidArgumentError("It must be a whole number.");
}
