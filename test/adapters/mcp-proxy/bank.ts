import { appendFileSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { z } from "zod";

/**
 * A server of Model Context Protocol as a process: `bank.ts LEDGER stdio`, or `http`, which prints its URL and asks for
 * the credential of the variable BANK_AUTHORIZATION. Each effect is a line of the ledger.
 */
const [ledger = "", transport] = process.argv.slice(2);
const order = { order: z.string() };
const textOf = (text: string) => ({ content: [{ type: "text" as const, text }] });

function newServer(): McpServer {
  const server = new McpServer({ name: "bank", version: "1" }, { capabilities: { logging: {} } });

  server.registerTool("refund", { inputSchema: order }, ({ order: id }) => {
    appendFileSync(ledger, `refund ${id}\n`);
    if (id === "the session's last") {
      sessions.clear();
      isFull = true;
    }
    return textOf(`refunded ${id}`);
  });
  server.registerTool("hang", { inputSchema: order }, async ({ order: id }, { signal }) => {
    appendFileSync(ledger, `hang ${id}\n`);
    await sleep(600_000, undefined, { signal }).catch(() => appendFileSync(ledger, `cancelled ${id}\n`));
    return textOf("late");
  });
  server.registerTool("die", { inputSchema: order }, ({ order: id }) => {
    appendFileSync(ledger, `die ${id}\n`);
    process.kill(process.pid, "SIGKILL");
    return textOf("never");
  });
  server.registerTool("decline", { inputSchema: order }, ({ order: id }) => {
    appendFileSync(ledger, `decline ${id}\n`);
    return { ...textOf("declined"), isError: true };
  });
  const keyed = { ...order, idempotency_key: z.string() };
  server.registerTool("charge", { inputSchema: keyed }, ({ order: id, idempotency_key: key }) => {
    appendFileSync(ledger, `charge ${id} ${key}\n`);
    if (id === "die") process.kill(process.pid, "SIGKILL");
    return textOf(`charged ${id}`);
  });
  const reads = { inputSchema: keyed, annotations: { readOnlyHint: true } };
  server.registerTool("find_charge", reads, ({ order: id, idempotency_key: key }) =>
    textOf(JSON.stringify({ isCharged: readFileSync(ledger, "utf8").includes(`charge ${id} ${key}\n`) })),
  );
  server.registerTool("count", { inputSchema: order }, async (_, { _meta, sendNotification }) => {
    appendFileSync(ledger, "count\n");
    const progressToken = _meta?.progressToken;
    if (progressToken !== undefined)
      await sendNotification({ method: "notifications/progress", params: { progressToken, progress: 1 } });
    return textOf("counted");
  });
  server.registerResource("ledger", "bank://ledger", {}, () => ({
    contents: [{ uri: "bank://ledger", text: "the ledger" }],
  }));
  server.registerPrompt("apologise", {}, () => ({
    messages: [{ role: "user", content: { type: "text", text: "Apologise." } }],
  }));
  return server;
}

const sessions = new Map<string, StreamableHTTPServerTransport>();
/** Whether the next session is refused. */
let isFull = false;

async function newSession(): Promise<StreamableHTTPServerTransport> {
  const session: StreamableHTTPServerTransport = new StreamableHTTPServerTransport({
    sessionIdGenerator: () => crypto.randomUUID(),
    onsessioninitialized: (id) => void sessions.set(id, session),
  });
  await newServer().connect(session as Transport);
  return session;
}

if (transport === "stdio") {
  process.stdin.once("end", () => process.exit());
  await newServer().connect(new StdioServerTransport());
} else {
  const listener = createServer(async (request, response) => {
    if (request.headers.authorization !== process.env.BANK_AUTHORIZATION) {
      response.writeHead(401).end();
      return;
    }
    const id = request.headers["mcp-session-id"];
    const session = id === undefined && !isFull ? await newSession() : sessions.get(`${id}`);
    if (id === undefined) isFull = false;
    if (session === undefined) response.writeHead(404).end();
    else await session.handleRequest(request, response);
  });
  listener.listen(0, "127.0.0.1", () => {
    const address = listener.address();
    if (typeof address === "object") process.stdout.write(`http://127.0.0.1:${address?.port}/mcp\n`);
  });
}
