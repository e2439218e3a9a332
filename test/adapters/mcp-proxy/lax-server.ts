import { appendFileSync } from "node:fs";
import { createInterface } from "node:readline";

/**
 * A server of Model Context Protocol that does not follow it: `lax-server.ts LEDGER`. It has the tools `refund` and
 * `Other` on two pages, takes methods in any case, and keeps each line that it reads in the ledger. A call's argument `mode` says how
 * it answers: `die` by its end, `task` with the handle of a task, `twice` with two answers, `never` not at all, an object with this error,
 * `change` after it has changed its tools.
 */
const [ledger = ""] = process.argv.slice(2);
const options = { properties: { key: {} }, required: ["key"] };
let inputSchema: object = { properties: { order: {}, options } };

for await (const line of createInterface({ input: process.stdin })) {
  appendFileSync(ledger, `${line}\n`);
  const { id, method, params } = JSON.parse(line);
  const answer = (result: unknown) =>
    process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, result })}\n`);
  if (method === "initialize") answer({ protocolVersion: "2025-06-18", capabilities: {}, serverInfo: {} });
  if (method === "tools/list")
    answer(
      params?.cursor === "2"
        ? { tools: [{ name: "refund", inputSchema }] }
        : { tools: [{ name: "Other", inputSchema }], nextCursor: "2" },
    );
  if (method.toLowerCase() !== "tools/call") continue;
  const { mode } = params.arguments;
  if (mode === "die") process.exit(3);
  if (mode === "change") {
    inputSchema = { $ref: "#/$defs/Refund" };
    process.stdout.write('{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n');
  }
  if (mode === "task") answer({ task: { taskId: "task-1", status: "working" } });
  else if (typeof mode === "object")
    process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, error: mode })}\n`);
  else if (mode !== "never") answer({ content: [{ type: "text", text: "first" }] });
  if (mode === "twice") answer({ content: [{ type: "text", text: "second" }] });
}
