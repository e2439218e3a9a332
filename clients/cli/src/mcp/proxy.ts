import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import type { JSONRPCMessage, JSONRPCRequest, RequestId } from "@modelcontextprotocol/sdk/types.js";
import type { AgentRunner } from "@onceward/client/agents";
import { OutcomeUnknownError } from "@onceward/client/agents";
import { messageOf } from "../failure.ts";
import { type CallParams, errorResult, Guard, type ToolResult } from "./guard.ts";
import type { ProxyPolicy, ToolPolicy } from "./policy.ts";
import { connectUpstream, type UpstreamAddress } from "./upstream.ts";

/** More guarded calls at once are refused. */
const MAX_GUARDED_CALLS = 256;
/** JSON-RPC's code of an internal error. */
const INTERNAL_ERROR = -32603;

/** A guarded call that the upstream server has not answered. */
interface Pending {
  readonly resolve: (answer: JSONRPCMessage) => void;
  readonly reject: (error: Error) => void;
}

/** What the proxy runs with. */
export interface ProxyOptions {
  readonly onceward: AgentRunner;
  readonly policy: ProxyPolicy;
  readonly upstream: UpstreamAddress;
  /** Writes a line for people. */
  readonly warn: (text: string) => void;
}

/**
 * Passes the messages of Model Context Protocol between a host, on standard input and output, and an upstream server, both
 * ways and unchanged; only calls of guarded tools wait for their claim. Resolves when the host has closed standard input and
 * the guarded calls have ended, or when the upstream server has closed.
 *
 * @throws the error of an upstream server that can't be started.
 */
export async function runProxy(options: ProxyOptions): Promise<void> {
  const proxy = new McpProxy(options);
  await proxy.run();
}

class McpProxy {
  readonly #host: Transport = new StdioServerTransport();
  readonly #upstream: Transport;
  readonly #guard: Guard;
  readonly #warn: (text: string) => void;
  readonly #pending = new Map<RequestId, Pending>();
  readonly #cancels = new Map<RequestId, AbortController>();
  readonly #calls = new Set<Promise<void>>();
  readonly #ended: Promise<void>;
  #end: () => void = () => {};
  #initializeId: RequestId | undefined;

  constructor({ onceward, policy, upstream, warn }: ProxyOptions) {
    this.#guard = new Guard(onceward, policy);
    this.#warn = warn;
    this.#ended = new Promise((resolve) => {
      this.#end = resolve;
    });
    this.#upstream = connectUpstream(upstream, (id) => this.#fail(id, "the answer broke off"));
  }

  async run(): Promise<void> {
    this.#host.onmessage = (message) => this.#fromHost(message);
    this.#host.onerror = (error) => this.#warn(`onceward: from the host: ${error.message}\n`);
    this.#host.onclose = () => this.#end();
    this.#upstream.onmessage = (message) => this.#fromUpstream(message);
    this.#upstream.onerror = (error) => this.#warn(`onceward: from the server: ${error.message}\n`);
    this.#upstream.onclose = () => {
      for (const id of this.#pending.keys()) this.#fail(id, "the server closed");
      this.#end();
    };
    await this.#upstream.start();
    process.stdin.once("end", () => this.#end());
    await this.#host.start();
    await this.#ended;
    // An effect that has begun is stored, although nobody waits for it any more.
    await Promise.allSettled(this.#calls);
    await this.#host.close();
    await this.#upstream.close();
  }

  #fromHost(message: JSONRPCMessage): void {
    if ("method" in message) {
      if (message.method === "initialize" && "id" in message) this.#initializeId = message.id;
      if (message.method === "notifications/cancelled") this.#cancel(message.params?.requestId);
      const policy = isToolCall(message) ? this.#guard.policyOf(message.params.name) : undefined;
      if (policy !== undefined && isToolCall(message)) {
        const call = this.#guarded(message, policy).finally(() => this.#calls.delete(call));
        this.#calls.add(call);
        return;
      }
    }
    this.#toUpstream(message);
  }

  #fromUpstream(message: JSONRPCMessage): void {
    if (!("method" in message) && message.id !== undefined) {
      if ("result" in message && message.id === this.#initializeId) this.#noteVersion(message.result);
      const pending = this.#pending.get(message.id);
      if (pending !== undefined) {
        this.#pending.delete(message.id);
        pending.resolve(message);
        return;
      }
    }
    this.#toHost(message);
  }

  /** The HTTP transport sends the version with each later request. */
  #noteVersion({ protocolVersion }: Readonly<Record<string, unknown>>): void {
    this.#initializeId = undefined;
    if (typeof protocolVersion === "string") this.#upstream.setProtocolVersion?.(protocolVersion);
  }

  /** The server gets the notification, too. It may have had the effect, and does not answer. */
  #cancel(id: unknown): void {
    if (typeof id !== "string" && typeof id !== "number") return;
    this.#cancels.get(id)?.abort(new Cancelled());
    this.#fail(id, "the host cancelled the call");
  }

  /** Makes a guarded call, and answers the host unless it has cancelled the call. Never rejects. */
  async #guarded(request: ToolCallRequest, policy: ToolPolicy): Promise<void> {
    const { id } = request;
    const controller = new AbortController();
    this.#cancels.set(id, controller);
    const answer = await this.#answerTo(request, policy, controller.signal);
    this.#cancels.delete(id);
    if (!controller.signal.aborted) this.#toHost(answer);
  }

  async #answerTo(
    request: ToolCallRequest,
    policy: ToolPolicy,
    signal: AbortSignal,
  ): Promise<JSONRPCMessage> {
    const { id, params } = request;
    if (this.#calls.size >= MAX_GUARDED_CALLS) {
      const text = `NOT RUN. ${MAX_GUARDED_CALLS} guarded calls are running. Call the tool again later.`;
      return { jsonrpc: "2.0", id, result: errorResult("TOO_MANY_CALLS", text) };
    }
    let refusal: JSONRPCMessage | undefined;
    try {
      const result = await this.#guard.call(params, policy, signal, async () => {
        const answer = await this.#ask(request, policy.timeoutMs);
        if ("result" in answer) return answer.result as ToolResult;
        refusal = answer;
        throw new Error("The server answered with an error.");
      });
      return { jsonrpc: "2.0", id, result };
    } catch (error) {
      const message = `onceward: ${messageOf(error)}`;
      return refusal ?? { jsonrpc: "2.0", id, error: { code: INTERNAL_ERROR, message } };
    }
  }

  /** Sends a request upstream. Resolves with its answer. @throws OutcomeUnknownError if there is none. */
  async #ask(request: ToolCallRequest, timeoutMs: number): Promise<JSONRPCMessage> {
    const answered = new Promise<JSONRPCMessage>((resolve, reject) => {
      this.#pending.set(request.id, { resolve, reject });
    });
    const timer = setTimeout(() => this.#fail(request.id, `no answer in ${timeoutMs} ms`), timeoutMs);
    try {
      this.#upstream.send(request).catch((error) => this.#fail(request.id, messageOf(error)));
      return await answered;
    } finally {
      clearTimeout(timer);
      this.#pending.delete(request.id);
    }
  }

  #fail(id: RequestId, why: string): void {
    this.#pending.get(id)?.reject(new OutcomeUnknownError(`The outcome is unknown: ${why}.`));
  }

  #toUpstream(message: JSONRPCMessage): void {
    this.#upstream.send(message).catch((error) => {
      const text = `onceward: the server is unreachable: ${messageOf(error)}`;
      if ("method" in message && "id" in message)
        this.#toHost({ jsonrpc: "2.0", id: message.id, error: { code: INTERNAL_ERROR, message: text } });
      else this.#warn(`${text}\n`);
    });
  }

  #toHost(message: JSONRPCMessage): void {
    this.#host.send(message).catch((error) => this.#warn(`onceward: to the host: ${messageOf(error)}\n`));
  }
}

/** The reason of a call's signal once the host has cancelled the call. */
class Cancelled extends Error {}

type ToolCallRequest = JSONRPCRequest & { readonly params: CallParams };

function isToolCall(message: JSONRPCMessage): message is ToolCallRequest {
  return (
    "method" in message &&
    "id" in message &&
    message.method === "tools/call" &&
    typeof message.params?.name === "string"
  );
}
