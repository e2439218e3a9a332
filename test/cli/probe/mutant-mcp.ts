import { appendFileSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";

/** How long an effect takes: a cancellation comes before its answer. */
const EFFECT_MS = 50;
const ALONE_MS = 2000;
/** The effects of the probe's first two calls, which only show whether answers differ; the check comes after them. */
const EFFECTS_BEFORE = 2;

/** Returns the effects of a server whose ledger is in this folder. */
export function effectsIn(dir: string): number {
  return readFileSync(join(dir, "ledger"), "utf8").length;
}

/** Returns the list of tools of a server that keeps every promise but the one that is named after a check. */
function toolsOf(fault: string) {
  const has = (id: string) => fault === `list.${id}`;
  const key = {
    type: "string",
    description: has("key-by-model")
      ? "A key that must be unique for every request."
      : "The key that the host gives.",
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
  const mail = {
    ...{ name: "sendMail", inputSchema: { type: "object", properties: { to: { type: "string" } } } },
    annotations: { idempotentHint: has("idempotent-hint") },
  };
  const harmless = ["list_charges", "get_transfer", "update_address", "create_or_update_address"].map(
    (name) => ({
      ...{ name, inputSchema: { type: "object" } },
      annotations: { idempotentHint: !name.startsWith("get") },
    }),
  );
  const isFaulty = has("no-key") || has("idempotent-hint");
  return [charge, ...harmless, ...(isFaulty ? [mail] : [])];
}

/** What the servers of a process share. */
interface Shared {
  /** Another one after each restart. */
  generation: string;
  /** Calls in flight. */
  running: number;
}

/** Returns a server whose keys and effects are files in a folder. */
function newServer(dir: string, fault: string, shared: Shared): Server {
  const has = (id: string) => fault === `call.${id}`;
  const server = new Server({ name: "mutant", version: "1" }, { capabilities: { tools: {} } });
  server.setRequestHandler(ListToolsRequestSchema, ({ params }) => {
    const tools = toolsOf(fault);
    return params?.cursor === undefined
      ? { tools: tools.slice(0, 2), nextCursor: "2" }
      : { tools: tools.slice(2) };
  });
  async function charge(key: unknown, args: string, signal: AbortSignal) {
    const slot = join(dir, `${has("lost") || has("restart") ? shared.generation : ""}${key}`);
    let before = known(slot);
    if (has("twins") && before === undefined && effectsIn(dir) >= EFFECTS_BEFORE) {
      for (let turn = 0; turn < ALONE_MS && shared.running < 2; turn++) await pause(1);
    } else if (has("repeated")) before = undefined;
    if (before !== undefined && before.args === args) return { text: before.answer };
    if (before !== undefined && !has("other-arguments")) return { text: "other arguments", isError: true };
    appendFileSync(join(dir, "ledger"), "1");
    const effects = effectsIn(dir);
    writeFileSync(slot, JSON.stringify({ args, answer: `charge ${effects}` }));
    const effectMs = has("cancelled") && effects > EFFECTS_BEFORE ? ALONE_MS : EFFECT_MS;
    await pause(effectMs, undefined, { signal }).catch(() => has("cancelled") && rmSync(slot));
    return { text: `charge ${effects}` };
  }
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, { signal }) => {
    const { idempotency_key: key, ...args } = params.arguments ?? {};
    shared.running++;
    const { text, isError = false } = await charge(key, JSON.stringify(args), signal);
    shared.running--;
    return { content: [{ type: "text", text }], isError };
  });
  return server;
}

function known(slot: string): { readonly args: string; readonly answer: string } | undefined {
  try {
    return JSON.parse(readFileSync(slot, "utf8"));
  } catch {
    return undefined;
  }
}

/** Returns a server over HTTP, with a session for each request. POST /restart is a restart of it. */
export function httpServerIn(dir: string, fault: string) {
  const shared: Shared = { generation: "", running: 0 };
  return createServer(async (request, response) => {
    if (request.url === "/restart") {
      shared.generation += "-";
      response.end();
      return;
    }
    const transport = new StreamableHTTPServerTransport();
    await newServer(dir, fault, shared).connect(transport as Transport);
    await transport.handleRequest(request, response);
  });
}

const [dir, fault = ""] = process.argv.slice(2);
if (import.meta.main && dir !== undefined)
  await newServer(dir, fault, { generation: `${process.pid}-`, running: 0 }).connect(
    new StdioServerTransport(),
  );
