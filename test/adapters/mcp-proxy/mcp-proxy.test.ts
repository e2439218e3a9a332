import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { describe, expect, onTestFinished, test } from "vitest";
import { runProgram } from "../../../clients/mcp-proxy/src/program.ts";
import { newDir } from "../../support/new-dir.ts";
import { CHILD_ENVIRONMENT } from "../../support/processes/child-environment.ts";
import { createTenant } from "../../support/servers/tenants.ts";
import { useServer } from "../../support/servers/use-server.ts";

const { database, server } = useServer();
const MAIN = fileURLToPath(new URL("../../../clients/mcp-proxy/src/main.ts", import.meta.url));
const UPSTREAM = fileURLToPath(new URL("bank.ts", import.meta.url));

const BANK_AUTHORIZATION = "Bearer bank";
const guarded = { key: ["/order"], leaseMs: 1000 };
const policy = {
  namespace: "mcp-tools",
  tools: {
    refund: guarded,
    hang: guarded,
    die: guarded,
    decline: guarded,
    charge: {
      ...guarded,
      keyArgument: "/idempotency_key",
      resolve: {
        tool: "find_charge",
        arguments: { order: "/order", idempotency_key: "/idempotency_key" },
        happened: { "/isCharged": true },
      },
    },
    count: { run: { id: "/onceward~1run", step: "/onceward~1step" } },
  },
};

/** A bank with its ledger, and hosts that reach it through a proxy. */
async function newBank(kind: "stdio" | "http", decline: object = guarded) {
  const dir = await newDir();
  const ledger = join(dir, "ledger.txt");
  const policyFile = join(dir, "policy.json");
  await writeFile(policyFile, JSON.stringify({ ...policy, tools: { ...policy.tools, decline } }));
  const { apiKey } = await createTenant(database);
  const env = {
    ...CHILD_ENVIRONMENT,
    ONCEWARD_ADDRESS: `http://127.0.0.1:${server.grpcPort}`,
    ONCEWARD_API_KEY: apiKey,
    BANK_AUTHORIZATION,
  } as Record<string, string>;
  const url = kind === "http" ? await startHttp(ledger) : undefined;
  const upstream =
    url === undefined
      ? ["--", process.execPath, UPSTREAM, ledger, "stdio"]
      : ["--url", url, "--header-env", "Authorization=BANK_AUTHORIZATION"];
  const effects = async () =>
    (await readFile(ledger, "utf8").catch(() => "")).split("\n").filter((line) => line !== "");
  async function connect() {
    const transport = new StdioClientTransport({
      command: process.execPath,
      args: ["--conditions=@onceward/source", MAIN, "--policy", policyFile, ...upstream],
      env,
      stderr: "ignore",
    });
    const host = new Client({ name: "host", version: "1" });
    await host.connect(transport);
    onTestFinished(() => host.close());
    return { host, kill: () => process.kill(transport.pid ?? 0, "SIGKILL") };
  }
  return { connect, effects };
}

async function startHttp(ledger: string): Promise<string> {
  const child = spawn(process.execPath, [UPSTREAM, ledger, "http"], {
    env: { ...CHILD_ENVIRONMENT, BANK_AUTHORIZATION },
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const [url] = await once(child.stdout, "data");
  return String(url).trim();
}

const callOf = (name: string, order = "7") => ({ name, arguments: { order } });

describe.each(["stdio", "http"] as const)("to a server over %s", (kind) => {
  test("a guarded call runs once, in one session or two; everything else passes through", async () => {
    const bank = await newBank(kind);
    const { host } = await bank.connect();
    const first = await host.callTool(callOf("refund"));
    expect(first).toMatchObject({ content: [{ text: "refunded 7" }] });
    const replay = {
      ...first,
      _meta: { "onceward/replayed": true, "onceward/completedAt": expect.any(String) },
    };
    expect(await host.callTool(callOf("refund"))).toEqual(replay);
    expect(await host.callTool(callOf("refund", "8"))).toMatchObject({ content: [{ text: "refunded 8" }] });
    const next = (await bank.connect()).host;
    expect(await next.callTool(callOf("refund"))).toEqual(replay);
    expect((await host.listTools()).tools.map(({ name }) => name)).toContain("refund");
    expect(await host.readResource({ uri: "bank://ledger" })).toMatchObject({
      contents: [{ text: "the ledger" }],
    });
    expect((await host.getPrompt({ name: "apologise" })).messages).toHaveLength(1);
    expect(host.getServerVersion()).toMatchObject({ name: "bank" });
    expect(await bank.effects()).toEqual(["refund 7", "refund 8"]);
  });

  test("a call during which the server dies has an unknown outcome, and is not repeated", async () => {
    const bank = await newBank(kind);
    const { host } = await bank.connect();
    const unknown = { isError: true, content: [{ text: expect.stringMatching(/^OUTCOME UNKNOWN/) }] };
    expect(await host.callTool(callOf("die"))).toMatchObject(unknown);
    if (kind === "stdio")
      expect(await (await bank.connect()).host.callTool(callOf("die"))).toMatchObject(unknown);
    expect(await bank.effects()).toEqual(["die 7"]);
  });
});

test("after the server has ended the session, calls do not run until it begins another", async () => {
  const bank = await newBank("http");
  const { host } = await bank.connect();
  await host.callTool(callOf("refund", "the session's last"));
  for (let sessions = 0; sessions < 2; sessions++)
    expect(await host.callTool(callOf("refund"))).toMatchObject({ _meta: { "onceward/reason": "NOT_SENT" } });
  expect(await host.callTool(callOf("refund"))).toMatchObject({ content: [{ text: "refunded 7" }] });
  expect(await bank.effects()).toHaveLength(2);
});

test("the server gets a key that the host does not send, and says by it that the call happened", async () => {
  const bank = await newBank("stdio");
  const { host } = await bank.connect();
  expect(await host.callTool(callOf("charge", "die"))).toMatchObject({ isError: true });
  expect(await (await bank.connect()).host.callTool(callOf("charge", "die"))).toEqual({
    content: [{ type: "text", text: '{"isCharged":true}' }],
    _meta: { "onceward/replayed": true },
  });
  expect(await bank.effects()).toEqual([expect.stringMatching(/^charge die [\w-]{43}$/)]);
});

test("a call during which the host and the proxy are killed is not repeated", async () => {
  const bank = await newBank("stdio");
  const { host, kill } = await bank.connect();
  const call = host.callTool(callOf("hang"));
  call.catch(() => {});
  await expect.poll(bank.effects).toEqual(["hang 7"]);
  kill();
  await expect(call).rejects.toThrow("Connection closed");
  const { host: next } = await bank.connect();
  expect(await next.callTool(callOf("hang"))).toMatchObject({
    content: [{ text: expect.stringMatching(/^OUTCOME UNKNOWN.*"hang:7"\.$/) }],
  });
  expect(await bank.effects()).toEqual(["hang 7"]);
});

test("a host that leaves during a call does not make it run again", async () => {
  const bank = await newBank("stdio");
  const { host } = await bank.connect();
  const leaving = new AbortController();
  const call = host.callTool(callOf("hang"), undefined, { signal: leaving.signal });
  call.catch(() => {});
  await expect.poll(bank.effects).toEqual(["hang 7"]);
  leaving.abort();
  // The server has the cancellation, too.
  await expect.poll(bank.effects).toEqual(["hang 7", "cancelled 7"]);
  expect(await host.callTool(callOf("hang"))).toMatchObject({ isError: true });
  expect(await bank.effects()).toEqual(["hang 7", "cancelled 7"]);
});

test("a call is named by the run and the step in _meta, with progress", async () => {
  const bank = await newBank("stdio");
  const { host } = await bank.connect();
  const _meta = { "onceward/run": "run-1", "onceward/step": 1 };
  const progress: number[] = [];
  const onprogress = (at: { progress: number }) => void progress.push(at.progress);
  for (let repeats = 0; repeats < 2; repeats++)
    await host.callTool({ ...callOf("count"), _meta }, undefined, { onprogress });
  await host.callTool({ ...callOf("count"), _meta: { ..._meta, "onceward/step": 2 } });
  expect(progress).toEqual([1]);
  expect(await host.callTool(callOf("count"))).toMatchObject({
    content: [{ text: expect.stringContaining("needs the run and the step in _meta") }],
  });
  const noOrder = { name: "refund", arguments: {} };
  expect(await host.callTool(noOrder)).toMatchObject({
    content: [{ text: expect.stringContaining("needs the argument /order") }],
  });
  expect(await bank.effects()).toEqual(["count", "count"]);
});

test.each([
  [undefined, ["declined", expect.stringMatching(/^OUTCOME UNKNOWN/)], 1],
  ["release", ["declined", "declined"], 2],
  ["store", ["declined", "declined"], 1],
])("with onToolError %j, a tool's own error and its duplicate", async (onToolError, texts, effects) => {
  const bank = await newBank("stdio", { ...guarded, onToolError });
  const { host } = await bank.connect();
  for (const text of texts)
    expect(await host.callTool(callOf("decline"))).toMatchObject({ isError: true, content: [{ text }] });
  expect(await bank.effects()).toHaveLength(effects);
});

/** Runs a command that ends before it reaches a server. */
async function runHere(args: readonly string[], env: Readonly<Record<string, string>>) {
  const printed = { stdout: "", stderr: "" };
  const exit = await runProgram({
    args,
    env,
    write: (text) => {
      printed.stdout += text;
    },
    warn: (text) => {
      printed.stderr += text;
    },
  });
  return { exit, ...printed };
}

test("a wrong command says what is wrong", async () => {
  const env = { ONCEWARD_ADDRESS: "http://127.0.0.1:1", ONCEWARD_API_KEY: "key" };
  const cases: [string[], RegExp][] = [
    [["--policy", "/nonexistent", "--", "server"], /The policy can't be read/],
    [["--policy", "/nonexistent"], /either a server's command after --, or its --url/],
    [
      ["--policy", "p", "--url", "http://a", "--", "server"],
      /either a server's command after --, or its --url/,
    ],
    [["--policy", "p", "--url", "ftp://a"], /It must be an http or https URL/],
    [["--policy", "p", "--url", "http://a", "--header-env", "A=ONCEWARD_NONE"], /ONCEWARD_NONE is not set/],
    [["--", "server"], /^onceward: required option '--policy <file>' not specified/],
  ];
  for (const [args, error] of cases) {
    const { exit, stderr } = await runHere(args, env);
    expect(stderr).toMatch(error);
    expect(exit).toBe(2);
  }
});

test("help and the version go to standard output", async () => {
  const help = await runHere(["--help"], {});
  expect(help).toMatchObject({ exit: 0, stderr: "" });
  expect(help.stdout).toContain("--api-key-file");
  expect(await runHere(["--version"], {})).toMatchObject({ exit: 0, stdout: expect.stringMatching(/^\d/) });
});

test("the address and the API key come from options or the environment, and are required", async () => {
  const dir = await newDir();
  const [policyFile, keyFile] = [join(dir, "policy.json"), join(dir, "key")];
  await writeFile(policyFile, JSON.stringify(policy));
  const args = ["--policy", policyFile, "--", "/nonexistent"];
  const address = "http://127.0.0.1:1";
  expect((await runHere(args, { ONCEWARD_API_KEY: "key" })).stderr).toContain("No address");
  expect((await runHere(args, { ONCEWARD_ADDRESS: address })).stderr).toContain("No API key");
  const options = ["--address", address, "--api-key-file", keyFile, ...args];
  expect((await runHere(options, {})).stderr).toContain("The API key can't be read");
  await writeFile(keyFile, "\n");
  expect((await runHere(options, {})).stderr).toContain(`${keyFile} is empty`);
  await writeFile(keyFile, "not\u0000a key");
  expect(await runHere(options, {})).toMatchObject({ exit: 2, stderr: expect.stringContaining("apiKey") });
  await writeFile(keyFile, "key\n");
  // The server's command is run, and does not exist.
  expect(await runHere(options, {})).toMatchObject({ exit: 1, stderr: expect.stringContaining("ENOENT") });
});
