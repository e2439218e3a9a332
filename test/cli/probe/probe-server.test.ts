import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { Budget } from "../../../clients/cli/src/probe/budget.ts";
import { readEndpoint } from "../../../clients/cli/src/probe/endpoint.ts";
import type { Answer } from "../../../clients/cli/src/probe/exchange.ts";
import { CALLS } from "../../../clients/cli/src/probe/mcp/calls.ts";
import { LIST } from "../../../clients/cli/src/probe/mcp/lint.ts";
import { probeServer, SERVER_CHECKS } from "../../../clients/cli/src/probe/mcp/probe-server.ts";
import { type Report, runChecks } from "../../../clients/cli/src/probe/probe.ts";
import * as sdk from "../../../clients/mcp-proxy/src/index.ts";
import { listen } from "../../adapters/http/listen.ts";
import { newDir } from "../../support/new-dir.ts";
import { CHILD_ENVIRONMENT } from "../../support/processes/child-environment.ts";
import { cliWith, failed } from "../../support/processes/cli.ts";
import { createTenant } from "../../support/servers/tenants.ts";
import { useServer } from "../../support/servers/use-server.ts";
import { httpServerOf } from "./mutant-mcp.ts";
import { startService } from "./mutant-service.ts";

const programOf = (file: URL) => `${process.execPath} ${fileURLToPath(file)}`;
const world = useServer();
const cli = cliWith({ PATH: process.env.PATH ?? "" });
const BOUNDS = { requests: 2000, bytes: 64 * 1024 * 1024, seconds: 200, perSecond: 1e6, requestMs: 60_000 };

/** Faults of the service that are those of calls. */
const OF_SERVICE: Readonly<Record<string, string>> = {
  "call.repeated": "same-key.effect",
  "call.twins": "twins.2",
  "call.other-arguments": "other.body-effect",
};

/** Starts a server that breaks one promise. Returns what can be said about its tool. */
async function mutant(kind: "stdio" | "http", fault: string) {
  const origin = await startService(OF_SERVICE[fault]);
  const said = {
    ...{ tools: ["create_charge"], allowWrites: true, lateMs: 0 },
    body: '{"order":"{{id}}"}',
    otherBody: '{"order":"{{id}}","amount":2}',
    countUrl: `${origin}/count`,
  };
  if (kind === "stdio")
    return readEndpoint({
      ...said,
      mcp: `${programOf(new URL("mutant-mcp.ts", import.meta.url))} ${origin} ${fault}`,
    });
  const { port, close } = await listen(httpServerOf(origin, fault));
  onTestFinished(close);
  const restart = [process.execPath, "-e", `await fetch('${origin}/restart', { method: 'POST' })`];
  return readEndpoint({ ...said, mcp: `http://127.0.0.1:${port}/mcp`, restartCommand: restart });
}

async function failuresOf(kind: "stdio" | "http", fault: string) {
  const reports = await probeServer(sdk, await mutant(kind, fault), {
    env: CHILD_ENVIRONMENT,
    bounds: BOUNDS,
  });
  return reports.flatMap(failuresIn);
}

function failuresIn(report: Report | undefined) {
  const failures = report?.findings.filter(({ verdict }) => verdict.kind !== "passed");
  return failures?.map(({ check, verdict }) => ({ id: check.id, ...verdict })) ?? [];
}

test.each(["stdio", "http"] as const)("a right server over %s passes every check", async (kind) => {
  expect(await failuresOf(kind, "")).toEqual([]);
});

test.each(SERVER_CHECKS.map(({ id }) => id))("%s fails on a server that breaks this promise", async (id) => {
  const failures = await failuresOf(id.startsWith("list.") ? "http" : "stdio", id);
  expect(failures).toContainEqual(expect.objectContaining({ id, kind: "failed" }));
});

test("names that create are told from those that change or read, and a key from its tool's text", () => {
  const judge = (id: string, names: string, more: object = {}) => {
    const tools = names.split(" ").map((name) => ({ name, ...more }));
    return LIST.find((check) => check.id === id)?.judge(tools);
  };
  const created =
    "transfer_funds capturePayment payout withdraw wire subscribe notifyUser email_customer push_files";
  expect(judge("list.no-key", created)).toMatchObject({ detail: created.replaceAll(" ", "; ") });
  const others = "transfer_issue withdraw_offer subscribeToIssue assignIssue get_payment share-email";
  expect(judge("list.no-key", others)).toMatchObject({ kind: "passed" });
  const more = {
    description: "Pays.\nReturns the unique identifier of the charge.\nGenerate a random UUID for requestId.",
    inputSchema: { properties: { requestId: {} } },
  };
  expect(judge("list.key-by-model", "pay", more)).toMatchObject({
    detail: expect.stringContaining("a random"),
  });
  // A search of the whole text, which takes quadratic time, would last for minutes.
  const requestId = { description: "unique ".repeat(2e5), examples: [] };
  const long = { description: more.description.split("\n")[1], inputSchema: { properties: { requestId } } };
  for (const id of ["list.key-by-model", "list.key-default"])
    expect(judge(id, "pay", long)).toMatchObject({ kind: "passed" });
  const hint = { annotations: { readOnlyHint: true } };
  expect(judge("list.read-only-hint", "send_invoice_preview", hint)).toMatchObject({ kind: "passed" });
});

test("our proxy before a server without keys passes every check of calls", async () => {
  const dir = await newDir();
  const policy = join(dir, "policy.json");
  const ledger = join(dir, "ledger");
  await writeFile(policy, JSON.stringify({ namespace: "tools", tools: { refund: { key: ["/order"] } } }));
  await writeFile(ledger, "");
  const { apiKey } = await createTenant(world.database);
  const keyFile = join(dir, "key");
  await writeFile(keyFile, apiKey);
  const proxy = fileURLToPath(new URL("../../../clients/mcp-proxy/src/main.ts", import.meta.url));
  const bank = `${programOf(new URL("../../adapters/mcp-proxy/bank.ts", import.meta.url))} ${ledger} stdio`;
  const endpoint = readEndpoint({
    // The server does not get the key of the command line.
    mcp: `sh -c 'test -z "$ONCEWARD_API_KEY" && exec ${process.execPath} --conditions=@onceward/source ${proxy} --policy ${policy} --api-key-file ${keyFile} -- ${bank}'`,
    ...{ tools: ["refund"], allowWrites: true, lateMs: 0 },
    body: '{"order":"{{id}}"}',
    otherBody: '{"order":"{{id}}","reason":"late"}',
    countCommand: ["sh", "-c", `wc -l < ${ledger}`],
  });
  const env = {
    ...CHILD_ENVIRONMENT,
    ONCEWARD_ADDRESS: `http://127.0.0.1:${world.server.grpcPort}`,
    ONCEWARD_API_KEY: apiKey,
  };
  const [list, calls] = await probeServer(sdk, endpoint, { env, bounds: BOUNDS });
  expect([failuresIn(list), calls?.key, failuresIn(calls)]).toEqual([[], "the arguments", []]);
});

test("a call that is refused after its session ended early has at most one effect", async () => {
  const answers = [200, 200, 400, 400].map((status, at) => ({
    status,
    headers: {},
    body: Buffer.from(`${at}`),
  }));
  const endpoint = readEndpoint({ mcp: "server", lateMs: 0 });
  const sender = {
    request: () => ({ url: "refund", method: "tools/call", headers: {}, body: "{}" }),
    show: () => "",
    send: async () => answers.shift() as Answer,
    ...{ cut: async () => {}, restart: async () => {} },
  };
  const options = { env: {}, budget: new Budget(BOUNDS), sender, only: ["call.lost"] };
  expect(failuresIn(await runChecks(CALLS, endpoint, options))).toEqual([]);
});

test("the command calls no tool without --allow-writes, and reports each tool with its key", async () => {
  const { mcp = "", body, countUrl = "" } = await mutant("stdio", "call.repeated");
  const args = ["probe", "--mcp", mcp, "--tools", "create_charge", "--arguments", body, "--json"];
  const count = ["--count-url", countUrl, "--rate", "1000"];
  for (const lacking of [args, ["probe", "--mcp", mcp, "--allow-writes"]])
    expect(await cli(...lacking)).toMatchObject({ exit: 2, stderr: expect.stringContaining("allowWrites") });
  const unasked = await cli("probe", "--mcp", mcp, "--json");
  expect([unasked.exit, JSON.parse(unasked.stdout).endpoints]).toMatchObject([
    0,
    [{ url: mcp, checks: { 6: { check: "call.repeated", result: "skipped", detail: "needs tools" } } }],
  ]);
  const called = await cli(...args, ...count, "--allow-writes", "--only", "call.repeated");
  expect([called.exit, JSON.parse(called.stdout).endpoints[1]]).toMatchObject([
    6,
    { key: "/idempotency_key, by its name", checks: [{ detail: "2 effects instead of 1" }] },
  ]);
  expect(called.stdout).toContain("--tool-name 'create_charge' --tool-arg 'order=");
  // Two calls to compare answers, and those of the check: none before.
  expect(await (await fetch(countUrl)).text()).toBe("4");
  const unknown = await cli(...args, "--allow-writes", "--tools", "nothing");
  expect(unknown).toMatchObject(failed(2, "has no tool nothing"));
  const keyless = ["probe", "--mcp", mcp, "--tools", "list_posts", "--allow-writes"];
  expect(await cli(...keyless)).toMatchObject(failed(2, "--key-argument"));
  expect(await cli("probe", "--mcp", mcp, "--dry-run")).toMatchObject({ exit: 2 });
});

test.each([
  ["pages", 5, "more than 50 requests"],
  ["flood", 5, "more than 4000000 bytes"],
  ["huge", 3, "exceeded maximum size"],
  ["silent", 3, "timed out"],
  ["dies", 3, "Connection closed"],
  ["refuses", 1, "no such method"],
])("a server that is hostile by %s ends the probe", async (mode, exit, why) => {
  const timeout = mode === "silent" ? "100" : "60000";
  const bounds = ["--max-requests", "50", "--max-bytes", "4000000", "--timeout", timeout];
  const hostile = `${programOf(new URL("hostile-mcp.ts", import.meta.url))} ${mode}`;
  const ended = await cli("probe", "--mcp", hostile, ...bounds);
  expect(ended).toMatchObject({ exit, stderr: expect.stringContaining(why) });
});
