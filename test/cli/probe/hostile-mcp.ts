import { createInterface } from "node:readline";

/** A server of Model Context Protocol that harms its client: `hostile-mcp.ts MODE`. */
const mode = process.argv[2];
const say = (message: unknown) =>
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...Object(message) })}\n`);

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method } = JSON.parse(line);
  if (mode === "silent") continue;
  if (method === "initialize")
    say({
      id,
      result: {
        protocolVersion: "2025-06-18",
        capabilities: {},
        serverInfo: { name: "hostile", version: "1" },
      },
    });
  if (method !== "tools/list") continue;
  if (mode === "dies") process.exit(1);
  if (mode === "huge") process.stdout.write("x".repeat(100 * 1024 * 1024));
  if (mode === "pages") say({ id, result: { tools: [], nextCursor: "more" } });
  if (mode === "refuses") say({ id, error: { code: -32601, message: "no such method" } });
  if (mode === "flood")
    setInterval(() => say({ method: "notifications/message", params: { text: "x".repeat(1024 * 1024) } }));
}
