import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { newDir } from "../../support/new-dir.ts";
import { CHILD_ENVIRONMENT } from "../../support/processes/child-environment.ts";
import { createTenant } from "../../support/servers/tenants.ts";
import { useServer } from "../../support/servers/use-server.ts";

/** What hosts and servers that don't follow the protocol send through the proxy. */

const { database, server } = useServer();
const MAIN = fileURLToPath(new URL("../../../clients/mcp-proxy/src/main.ts", import.meta.url));
const UPSTREAM = fileURLToPath(new URL("lax-server.ts", import.meta.url));

interface Answer {
  readonly id?: number;
  readonly result?: Readonly<Record<string, unknown>>;
  readonly error?: { readonly message: string };
}

/** Starts a proxy that guards the tool, whose host sends lines as they are. */
async function newHost(tool = "refund", more: object = {}) {
  const dir = await newDir();
  const ledger = join(dir, "ledger.txt");
  const policy = join(dir, "policy.json");
  const tools = { [tool]: { key: ["/order"], leaseMs: 1000, ...more } };
  await writeFile(policy, JSON.stringify({ namespace: "mcp-tools", tools }));
  const { apiKey } = await createTenant(database);
  const args = ["--policy", policy, "--", process.execPath, UPSTREAM, ledger];
  const child = spawn(process.execPath, ["--conditions=@onceward/source", MAIN, ...args], {
    env: {
      ...CHILD_ENVIRONMENT,
      ONCEWARD_ADDRESS: `http://127.0.0.1:${server.grpcPort}`,
      ONCEWARD_API_KEY: apiKey,
    },
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const exited = once(child, "exit");
  const answers: Answer[] = [];
  createInterface({ input: child.stdout }).on("line", (line) => answers.push(JSON.parse(line)));
  let stderr = "";
  child.stderr.on("data", (text) => {
    stderr += text;
  });
  const send = (line: string) => void child.stdin.write(`${line}\n`);
  const call = (id: number, args: string, more = "", method = "tools/call", name = tool) =>
    send(
      `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":{"name":"${name}","arguments":${args}${more}}}`,
    );
  send('{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}');
  await expect.poll(() => answers.length, { timeout: 20_000 }).toBe(1);
  const initialized = () => send('{"jsonrpc":"2.0","method":"notifications/initialized"}');
  if (!("keyArgument" in more)) initialized();
  return {
    initialized,
    send,
    call,
    answers,
    exited,
    stderr: () => stderr,
    answerTo: (id: number, count = 1) =>
      expect.poll(() => answers.filter((answer) => answer.id === id).length, { timeout: 20_000 }).toBe(count),
    /** Returns the lines with calls that the server has read. */
    called: async () =>
      (await readFile(ledger, "utf8")).split("\n").filter((line) => /"tools\/call"/i.test(line)),
  };
}

test("a policy with an unknown tool is refused at the start, and no call passes", async () => {
  const { call, exited, stderr, called } = await newHost("refnud");
  call(1, '{"order":"7"}', "", "tools/call", "refund");
  expect((await exited)[0]).toBe(2);
  expect(stderr()).toContain("The server has no tool refnud, which the policy names. It has: Other, refund.");
  expect(await called()).toEqual([]);
});

test("a second call with the id of one in flight is refused, and neither gets the other's answer", async () => {
  const { call, answers, answerTo, called } = await newHost();
  call(1, '{"order":"a","mode":"never"}');
  await expect.poll(called).toHaveLength(1);
  call(1, '{"order":"b"}');
  await answerTo(1);
  expect(answers.at(-1)?.error?.message).toContain("the id 1 is that of another call");
  expect(await called()).toHaveLength(1);
});

test("a second answer of the server is dropped: the host gets the first, which is stored", async () => {
  const { call, answers, answerTo } = await newHost();
  call(1, '{"order":"a","mode":"twice"}');
  await answerTo(1);
  call(2, '{"order":"a","mode":"twice"}');
  await answerTo(2);
  const texts = answers.slice(1).map(({ result }) => result?.content);
  expect(texts).toEqual([1, 2].map(() => [{ type: "text", text: "first" }]));
});

test("what a lenient server could take for a guarded call does not reach it", async () => {
  const { send, call, answers, answerTo, called, stderr } = await newHost();
  const params = '"params":{"name":"refund","arguments":{"order":"7"}}';
  send(`{"jsonrpc":"2.0","method":"tools/call",${params}}`);
  call(1, '{"order":"7"}', "", "Tools/Call");
  call(2, '{"order":"7"}', "", "tools/call", "Refund");
  send('{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":["refund"]}}');
  send(`[{"jsonrpc":"2.0","id":5,"method":"tools/call",${params}}]`);
  for (const id of [1, 2, 3, 5]) await answerTo(id);
  call(6, '{"order":"\\ud800"}');
  await answerTo(6);
  expect(answers.slice(1).map((answer) => JSON.stringify(answer))).toEqual(
    [1, 2, 3, 5, 6].map(() => expect.stringContaining("NOT RUN")),
  );
  expect(stderr()).toContain("without an id is dropped");
  // A tool that is not guarded passes.
  call(4, '{"order":"7"}', "", "tools/call", "Other");
  await answerTo(4);
  expect(await called()).toHaveLength(1);
});

test.each([
  [-32603, "Internal error", 1],
  [-32001, "Request timed out", 1],
  [-32602, "MCP error -32602: Input validation error: Invalid arguments for tool refund: order", 2],
  [-32602, "Invalid arguments for tool refund: order", 2],
  [-32602, "MCP error -32602: Invalid arguments for tool capture: order", 1],
  [-32602, "MCP error -32602: Invalid arguments: id: expected string, received number", 1],
  [-32602, "Input validation error: id: expected string, received number", 1],
  [-32602, "Tool refund disabled", 2],
  [-32602, "MCP error -32602: Tool refund not found", 2],
  [-32602, "Tool capture not found", 1],
  [-32600, "MCP error -32600: API error: 409", 1],
  [-32601, "Method not found", 1],
  [-32700, "MCP error -32700: Unexpected end of JSON input", 1],
  [-32602, "MCP error -32602: Invalid tools/call result: not found", 1],
])(
  "after the error %i, %s, the tool is called %i times by two calls",
  async (code, message, times) => {
    const { call, answers, answerTo, called } = await newHost("refund", { leaseMs: 60_000 });
    for (const id of [1, 2]) {
      call(id, JSON.stringify({ order: "a", mode: { code, message } }));
      await answerTo(id);
    }
    expect(await called()).toHaveLength(times);
    expect(answers[1]?.error?.message).toBe(message);
    if (times === 1) expect(JSON.stringify(answers.at(-1))).toContain("OUTCOME UNKNOWN");
  },
  60_000,
);

test("a server that ends is named, with how it ended", async () => {
  const { call, exited, stderr } = await newHost();
  call(1, '{"order":"a","mode":"die"}');
  expect((await exited)[0]).toBe(1);
  expect(stderr()).toContain("the server has ended, by exit code 3");
});

test("a guarded call as a task is refused, and the handle of a task is not stored as a result", async () => {
  const { call, answers, answerTo, called } = await newHost();
  call(1, '{"order":"a"}', ',"task":{"ttl":1000}');
  await answerTo(1);
  expect(JSON.stringify(answers.at(-1))).toContain("can't be called as a task");
  expect(await called()).toEqual([]);
  call(2, '{"order":"a","mode":"task"}');
  await answerTo(2);
  expect(JSON.stringify(answers.at(-1))).toContain("OUTCOME UNKNOWN");
});

test("a message over 10 MiB is skipped, and the proxy serves the next one", async () => {
  const { call, answerTo, called, stderr } = await newHost();
  call(1, `{"order":"${"x".repeat(11 * 1024 * 1024)}"}`);
  call(2, '{"order":"a"}');
  await answerTo(2);
  expect(stderr()).toMatch(/a message of \d+ bytes is skipped; at most 10485760 are read/);
  expect(await called()).toHaveLength(1);
});

test("256 guarded calls run at once, and one more is refused", async () => {
  const { call, answers, answerTo, called } = await newHost("refund", { leaseMs: 60_000 });
  for (let id = 1; id <= 257; id++) call(id, `{"order":"${id}","mode":"never"}`);
  await answerTo(257);
  expect(answers.at(-1)).toMatchObject({ result: { _meta: { "onceward/reason": "TOO_MANY_CALLS" } } });
  await expect.poll(async () => (await called()).length, { timeout: 120_000 }).toBe(256);
});

test("no list of tools has the argument for the key; a tool that loses it is refused", async () => {
  const { send, call, initialized, answers, answerTo, called, exited, stderr } = await newHost("refund", {
    keyArgument: "/options/key",
  });
  send('{"jsonrpc":"2.0","id":1,"method":"tools/list"}');
  send('{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"cursor":"2"}}');
  for (const id of [1, 2]) await answerTo(id);
  const [other, refund] = answers.slice(1).map(({ result }) => JSON.stringify(result?.tools));
  expect([other, refund]).toEqual([expect.stringContaining('"key"'), expect.not.stringContaining('"key"')]);
  initialized();
  call(3, '{"order":9007199254740993,"mode":"change","options":{"key":"the model\'s","cents":0.10}}');
  await answerTo(3);
  expect((await called())[0]).toMatch(
    /"arguments":\{"order":9007199254740993,"mode":"change","options":\{"key":"[\w-]{43}","cents":0.1\}\}/,
  );
  call(4, '{"order":"8"}');
  expect((await exited)[0]).toBe(2);
  expect(stderr()).toContain("tools.refund.keyArgument /options/key is not among");
  expect(await called()).toHaveLength(1);
});
