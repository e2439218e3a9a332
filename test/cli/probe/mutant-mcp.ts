import { createServer } from "node:http";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import {
  CallToolRequestSchema,
  CancelledNotificationSchema,
  ListToolsRequestSchema,
} from "@modelcontextprotocol/sdk/types.js";

/** Returns the list of tools of a server that keeps every promise but the one that is named after a check. */
function toolsOf(fault: string) {
  const has = (id: string) => fault === `list.${id}`;
  const key = {
    type: "string",
    description: has("key-by-model") ? "Must be unique for every request." : "The key that the host gives.",
    ...(has("key-default") && { default: "charge-1" }),
  };
  const charge = {
    name: "create_charge",
    inputSchema: {
      type: "object",
      properties: { order: { type: "string" }, idempotency_key: key },
      required: has("key-optional") ? ["order"] : ["order", "idempotency_key"],
    },
    annotations: { readOnlyHint: has("read-only-hint") },
  };
  const plain = (name: string, idempotentHint: boolean) => ({
    ...{ name, inputSchema: { type: "object" }, annotations: { idempotentHint } },
  });
  const harmless = ["list_posts", "get_refund", "transfer_issue", "create_or_update_file", "add_label"];
  const isFaulty = has("no-key") || has("idempotent-hint");
  return [
    charge,
    ...harmless.map((name) => plain(name, name !== "get_refund")),
    ...(isFaulty ? [plain("sendMail", has("idempotent-hint"))] : []),
  ];
}

/** Returns a server with one tool that writes, whose calls are requests to a service of `mutant-service.ts`. */
function newServer(origin: string, fault: string): Server {
  const cancelled = new Set<unknown>();
  const keys = new Map<unknown, unknown>();
  const server = new Server({ name: "mutant", version: "1" }, { capabilities: { tools: {} } });
  server.setRequestHandler(ListToolsRequestSchema, ({ params }) => {
    const tools = toolsOf(fault);
    if (params?.cursor === undefined) return { tools: tools.slice(0, 2), nextCursor: "2" };
    return { tools: tools.slice(2) };
  });
  // Also of a call that has ended before.
  server.setNotificationHandler(CancelledNotificationSchema, ({ params }) => {
    if (fault === "call.cancelled") cancelled.add(keys.get(params.requestId));
  });
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, { requestId }) => {
    const { idempotency_key: key, ...order } = params.arguments ?? {};
    keys.set(requestId, key);
    const isForgotten = fault === "call.lost" || fault === "call.restart" || cancelled.has(key);
    const response = await fetch(`${origin}/charges`, {
      method: "POST",
      headers: { "idempotency-key": `${key}${isForgotten ? process.pid : ""}` },
      body: JSON.stringify(order),
    });
    return { content: [{ type: "text", text: await response.text() }], isError: !response.ok };
  });
  return server;
}

/** Returns the server over HTTP, with a session for each request. */
export function httpServerOf(origin: string, fault: string) {
  return createServer(async (request, response) => {
    const transport = new StreamableHTTPServerTransport();
    await newServer(origin, fault).connect(transport as Transport);
    await transport.handleRequest(request, response);
  });
}

const [origin, fault = ""] = process.argv.slice(2);
if (import.meta.main && origin !== undefined)
  await newServer(origin, fault).connect(new StdioServerTransport());
