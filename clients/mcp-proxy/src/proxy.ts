import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import {
  ErrorCode,
  type JSONRPCErrorResponse,
  type JSONRPCMessage,
  type JSONRPCNotification,
  type JSONRPCRequest,
  type RequestId,
} from "@modelcontextprotocol/sdk/types.js";
import { NoEffectError, OutcomeUnknownError } from "@onceward/client/agents";
import { messageOf, UsageError } from "./failure.ts";
import { type CallParams, errorResult, Guard, type McpRunner, type ToolResult, toolError } from "./guard.ts";
import { HostTransport } from "./host-transport.ts";
import type { ProxyPolicy, ToolPolicy } from "./policy.ts";
import { checkTools, withoutKeyArguments } from "./tool-check.ts";
import { connectUpstream, isSessionEnd, type UpstreamAddress } from "./upstream.ts";
import { UpstreamRequests } from "./upstream-requests.ts";

/** More guarded calls at once are refused. */
const MAX_GUARDED_CALLS = 256;
/** How long the server may take to list its tools, or to begin a session, in milliseconds. */
const LIST_TIMEOUT_MS = 60_000;
const TOOL_CALL = "tools/call";
/** After it, the policy is compared with the tools again. */
const TOOLS_CHANGED = "notifications/tools/list_changed";

/** What the proxy runs with. */
export interface ProxyOptions {
  readonly onceward: McpRunner;
  readonly policy: ProxyPolicy;
  readonly upstream: UpstreamAddress;
  /** Writes a line for people. */
  readonly warn: (text: string) => void;
}

/**
 * Passes the messages of Model Context Protocol between a host, on standard input and output, and an upstream server, both
 * ways and unchanged, but for the arguments that it writes itself: the host does not see them in the server's tools. Calls of
 * guarded tools wait for their claim, and all calls of tools until the policy is compared with the server's tools. Resolves
 * when the host has closed standard input and the guarded calls have ended.
 *
 * A guarded call has an id of the proxy's own at the server, so that no other answer can be taken for its answer.
 *
 * @throws UsageError if the policy does not fit the server's tools; Error if the server can't be started, or has ended.
 */
export async function runProxy(options: ProxyOptions): Promise<void> {
  const proxy = new McpProxy(options);
  await proxy.run();
}

class McpProxy {
  readonly #host = new HostTransport(process.stdin, process.stdout);
  readonly #upstream: Transport;
  readonly #policy: ProxyPolicy;
  readonly #guard: Guard;
  readonly #warn: (text: string) => void;
  readonly #requests = new UpstreamRequests((message) => this.#send(message));
  /** The guarded calls, by the host's ids. */
  readonly #cancels = new Map<RequestId, GuardedCall>();
  readonly #calls = new Set<Promise<unknown>>();
  readonly #ended: Promise<void>;
  #end: () => void = () => {};
  #isEnding = false;
  /** As the host began the session. */
  #initialize: JSONRPCRequest | undefined;
  #renewal: Promise<void> | undefined;
  #checked: Promise<Misfit | undefined> | undefined;
  /** How the server's process has ended. */
  #exit = "";
  #refusal: unknown;

  constructor({ onceward, policy, upstream, warn }: ProxyOptions) {
    this.#policy = policy;
    this.#guard = new Guard(onceward, policy, warn);
    this.#warn = warn;
    this.#ended = new Promise((resolve) => {
      this.#end = () => {
        this.#isEnding = true;
        resolve();
      };
    });
    this.#upstream = connectUpstream(upstream, (id) => this.#requests.fail(id, "the answer broke off"));
  }

  async run(): Promise<void> {
    this.#host.onmessage = (message) => this.#fromHost(message);
    this.#host.onerror = (error) => this.#warn(`onceward: from the host: ${error.message}\n`);
    this.#host.onclose = () => this.#end();
    this.#upstream.onmessage = (message) => this.#fromUpstream(message);
    this.#upstream.onerror = (error) => this.#warn(`onceward: from the server: ${error.message}\n`);
    this.#upstream.onclose = () => {
      this.#requests.failAll("the server closed");
      if (!this.#isEnding) this.#refusal ??= new Error(`the server has ended${this.#exit}`);
      this.#end();
    };
    await this.#upstream.start();
    // The SDK does not say how its process ends.
    Reflect.get(this.#upstream, "_process")?.once("exit", (code: number | null, signal: string | null) => {
      this.#exit = `, by ${signal ?? `exit code ${code}`}`;
    });
    await this.#host.start();
    await this.#ended;
    // An effect that has begun is stored, although no one waits for it.
    await Promise.allSettled(this.#calls);
    await this.#host.close();
    await this.#upstream.close();
    if (this.#refusal !== undefined) throw this.#refusal;
  }

  /** Resolves once the message is sent on; a guarded call, once it has ended. */
  #fromHost(message: JSONRPCMessage): Promise<void> {
    return "method" in message ? this.#fromHostMethod(message) : this.#toUpstream(message);
  }

  async #fromHostMethod(message: JSONRPCRequest | JSONRPCNotification): Promise<void> {
    const { method } = message;
    if (method === "initialize" && "id" in message) this.#initialize = message;
    if (method === "notifications/cancelled" && this.#cancel(message)) return;
    // A server may be less strict than the protocol: what it could take for a call does not pass unguarded.
    if (method.trim().toLowerCase() === TOOL_CALL) {
      await this.#fromToolCall(message);
      return;
    }
    await this.#toUpstream(message);
    if (method === "notifications/initialized") await this.#checkTools();
  }

  async #fromToolCall(message: JSONRPCRequest | JSONRPCNotification): Promise<void> {
    if (!("id" in message)) {
      this.#warn(`onceward: a ${TOOL_CALL} without an id is dropped\n`);
      return;
    }
    if (!isToolCall(message)) {
      this.#refuse(
        message.id,
        ErrorCode.MethodNotFound,
        `it must be ${TOOL_CALL}, and have the name of a tool.`,
      );
      return;
    }
    if (this.#cancels.has(message.id)) {
      this.#refuse(message.id, ErrorCode.InvalidRequest, `the id ${message.id} is that of another call.`);
      return;
    }
    const call = this.#call(message).finally(() => this.#calls.delete(call));
    this.#calls.add(call);
    await (await call)?.sent;
  }

  /**
   * Makes a call: guarded, or passed through if its tool has no policy. Never rejects. Resolves with the sending of a call that
   * passes through, which may last as long as the call.
   */
  async #call(request: ToolCallRequest): Promise<{ readonly sent: Promise<void> } | undefined> {
    const { name } = request.params;
    const policy = this.#guard.policyOf(name);
    if (policy !== undefined) {
      await this.#guarded(request, policy);
      return undefined;
    }
    const misfit = await this.#checkTools();
    if (misfit !== undefined) {
      this.#refuse(request.id, ErrorCode.InternalError, misfit.why);
      return undefined;
    }
    const alike = [...this.#policy.keys()].find((tool) => tool.toLowerCase() === name.trim().toLowerCase());
    if (alike === undefined) return { sent: this.#toUpstream(request) };
    this.#refuse(
      request.id,
      ErrorCode.InvalidRequest,
      `${name} is not the name of the guarded tool ${alike}.`,
    );
    return undefined;
  }

  /** Compares the policy with the server's tools once; ends the proxy if they differ. Resolves with why no call may be sent. */
  #checkTools(): Promise<Misfit | undefined> {
    this.#checked ??= checkTools(this.#policy, (params) =>
      this.#requests.ask({ method: "tools/list", params }, LIST_TIMEOUT_MS),
    ).then(
      (offered) => {
        const names = [...this.#policy.keys()].join(", ");
        const passed = offered.size - this.#policy.size;
        this.#warn(`onceward: guarded: ${names}; ${passed} other tools pass through\n`);
        return undefined;
      },
      (error): Misfit => {
        if (error instanceof UsageError) {
          this.#refusal ??= error;
          this.#end();
          return { reason: "INVALID_REQUEST", why: "The policy does not fit the server." };
        }
        // The next call asks again.
        this.#checked = undefined;
        this.#warn(`onceward: the server does not list its tools: ${messageOf(error)}\n`);
        return { reason: "NOT_SENT", why: "The server does not list its tools. Call the tool again later." };
      },
    );
    return this.#checked;
  }

  #refuse(id: RequestId, code: number, why: string): void {
    this.#toHost({ jsonrpc: "2.0", id, error: { code, message: `onceward: NOT RUN: ${why}` } });
  }

  #fromUpstream(message: JSONRPCMessage): void {
    if (!("method" in message) && message.id !== undefined) {
      if ("result" in message && message.id === this.#initialize?.id) this.#noteVersion(message.result);
      if (this.#requests.answer(message.id, message)) return;
    }
    if ("method" in message && message.method === TOOLS_CHANGED) this.#checked = undefined;
    if (!("result" in message)) this.#toHost(message);
    else this.#toHost({ ...message, result: withoutKeyArguments(this.#policy, message.result) });
  }

  /** The HTTP transport sends the version with each later request. */
  #noteVersion({ protocolVersion }: Readonly<Record<string, unknown>>): void {
    if (typeof protocolVersion === "string") this.#upstream.setProtocolVersion?.(protocolVersion);
  }

  /**
   * Cancels a guarded call, if the notification is about one. The server gets the notification, too, with the proxy's id: it
   * may have had the effect, and does not answer.
   */
  #cancel(message: JSONRPCNotification | JSONRPCRequest): boolean {
    const call = this.#cancels.get(message.params?.requestId as RequestId);
    if (call === undefined) return false;
    call.controller.abort(new Cancelled());
    const { upstreamId } = call;
    if (upstreamId === undefined) return true;
    void this.#toUpstream({ ...message, params: { ...message.params, requestId: upstreamId } });
    this.#requests.fail(upstreamId, "the host cancelled the call");
    return true;
  }

  /** Makes a guarded call, and answers the host unless it has cancelled the call. Never rejects. */
  async #guarded(request: ToolCallRequest, policy: ToolPolicy): Promise<void> {
    const { id } = request;
    const call: GuardedCall = { controller: new AbortController(), upstreamId: undefined };
    this.#cancels.set(id, call);
    const answer = await this.#answerTo(request, policy, call);
    this.#cancels.delete(id);
    if (!call.controller.signal.aborted) this.#toHost(answer);
  }

  async #answerTo(
    { id, method, params }: ToolCallRequest,
    policy: ToolPolicy,
    call: GuardedCall,
  ): Promise<JSONRPCMessage> {
    const notRun = (reason: string, why: string): JSONRPCMessage => ({
      jsonrpc: "2.0",
      id,
      result: errorResult(reason, `NOT RUN. ${why}`),
    });
    if (this.#cancels.size > MAX_GUARDED_CALLS) {
      const why = `${MAX_GUARDED_CALLS} guarded calls are running. Call the tool again later.`;
      return notRun("TOO_MANY_CALLS", why);
    }
    if (params.task !== undefined) {
      return notRun("INVALID_REQUEST", `The tool ${params.name} can't be called as a task.`);
    }
    const misfit = await this.#checkTools();
    if (misfit !== undefined) return notRun(misfit.reason, misfit.why);
    let refusal: JSONRPCMessage | undefined;
    try {
      const ask = (params: object, onSend?: (id: string) => void) =>
        this.#requests.ask({ method, params: { ...params } }, policy.timeoutMs, onSend);
      const result = await this.#guard.call(params, policy, call.controller.signal, {
        send: async (params) => {
          const answer = await ask(params, (upstreamId) => {
            call.upstreamId = upstreamId;
          });
          if ("result" in answer) return finished(answer.result);
          refusal = { ...answer, id } as JSONRPCMessage;
          if ("error" in answer && wasNotCalled(params.name, answer.error))
            throw new NoEffectError("The server refused the call.");
          throw toolError(policy);
        },
        read: async (params) => {
          const answer = await ask(params);
          if ("result" in answer) return finished(answer.result);
          throw new OutcomeUnknownError("The tool that finds out did not answer with a result.");
        },
      });
      return refusal ?? { jsonrpc: "2.0", id, result };
    } catch (error) {
      const message = `onceward: ${messageOf(error)}`;
      return refusal ?? { jsonrpc: "2.0", id, error: { code: ErrorCode.InternalError, message } };
    }
  }

  /** Sends a message upstream. If the server has ended the session, begins the next one before this rejects. */
  async #send(message: JSONRPCMessage): Promise<void> {
    try {
      await this.#upstream.send(message);
    } catch (error) {
      const begins = "method" in message && message.method === "initialize";
      if (isSessionEnd(error) && !begins) await this.#beginSession();
      throw error;
    }
  }

  /** Begins a session as the host began the last one. Never rejects: the next message tries again. */
  #beginSession(): Promise<void> {
    const { params } = this.#initialize ?? {};
    this.#renewal ??= this.#requests
      .ask({ method: "initialize", params }, LIST_TIMEOUT_MS)
      .then(() => this.#upstream.send({ jsonrpc: "2.0", method: "notifications/initialized" }))
      .catch((error) => this.#warn(`onceward: no new session: ${messageOf(error)}\n`))
      .finally(() => {
        this.#renewal = undefined;
        this.#checked = undefined;
      });
    return this.#renewal;
  }

  /** Sends a message upstream. Never rejects. */
  #toUpstream(message: JSONRPCMessage): Promise<void> {
    return this.#send(message).catch((error) => {
      const text = `onceward: the server is unreachable: ${messageOf(error)}`;
      if ("method" in message && "id" in message)
        this.#toHost({
          jsonrpc: "2.0",
          id: message.id,
          error: { code: ErrorCode.InternalError, message: text },
        });
      else this.#warn(`${text}\n`);
    });
  }

  #toHost(message: JSONRPCMessage): void {
    this.#host.send(message).catch((error) => this.#warn(`onceward: to the host: ${messageOf(error)}\n`));
  }
}

/** The reason of a call's signal once the host has cancelled the call. */
class Cancelled extends Error {}

/** Why no call may be sent to the server. */
interface Misfit {
  readonly reason: "INVALID_REQUEST" | "NOT_SENT";
  readonly why: string;
}

/** A guarded call that the host waits for. */
interface GuardedCall {
  readonly controller: AbortController;
  /** The id of its request at the server, once that is sent. */
  upstreamId: string | undefined;
}

/**
 * Returns whether it is the SDK's server that refused the call. Handlers send such codes, too, also after the effect: a text
 * like "Invalid arguments: ..." may be about a provider's answer, and "Method not found" about a request to the host.
 */
function wasNotCalled(tool: string, { code, message }: JSONRPCErrorResponse["error"]): boolean {
  if (code !== ErrorCode.InvalidParams) return false;
  const text = message.replace(/^(MCP error -32602: )*(Input validation error: )?/, "");
  if (text.startsWith(`Invalid arguments for tool ${tool}: `)) return true;
  return text === `Tool ${tool} not found` || text === `Tool ${tool} disabled`;
}

/** Returns the result of a tool. @throws OutcomeUnknownError for the handle of a task that is still working. */
function finished(result: ToolResult): ToolResult {
  if (typeof result.task !== "object") return result;
  throw new OutcomeUnknownError("The outcome is unknown: the server answered with a task.");
}

type ToolCallRequest = JSONRPCRequest & { readonly params: CallParams };

function isToolCall(message: JSONRPCRequest): message is ToolCallRequest {
  return message.method === TOOL_CALL && typeof message.params?.name === "string";
}
