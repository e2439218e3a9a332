import { setTimeout as pause } from "node:timers/promises";
import type { UpstreamAddress } from "@onceward/mcp-proxy";
import { messageOf } from "../../failure.ts";
import { VERSION } from "../../version.ts";
import { BoundReached, type Budget } from "../budget.ts";
import type { Endpoint, ProbeRequest } from "../endpoint.ts";
import { type Answer, type Cut, type Environment, expand, NoAnswerError } from "../exchange.ts";
import { NotProbedError } from "../probe.ts";
import { runRestart } from "../scene.ts";
import type { Tool } from "./lint.ts";

type Sdk = typeof import("@onceward/mcp-proxy");

/** How long the server has to begin a call, in milliseconds, before its session ends. */
const CUT_MS = 50;

interface Session {
  readonly client: InstanceType<Sdk["Client"]>;
  readonly transport: ReturnType<Sdk["connectUpstream"]>;
  /** A bound that ended it, or else the first error of the connection. */
  broken?: Error;
}

/** A server of Model Context Protocol, with one session at a time. A call after the end of a session opens the next one. */
export class McpServer {
  readonly #sdk: Sdk;
  readonly #endpoint: Endpoint;
  readonly #budget: Budget;
  readonly #address: UpstreamAddress;
  #session: Promise<Session> | undefined;

  /** @param endpoint its `mcp` is a URL, or a command for the shell. */
  constructor(sdk: Sdk, endpoint: Endpoint, budget: Budget, env: Environment) {
    this.#sdk = sdk;
    this.#endpoint = endpoint;
    this.#budget = budget;
    this.#address = addressOf(endpoint, env);
  }

  /** Returns the tools of all pages. @throws NoAnswerError, BoundReached; NotProbedError if the server refuses. */
  async listTools(): Promise<readonly Tool[]> {
    const tools: Tool[] = [];
    let cursor: unknown;
    do {
      await this.#budget.request(1);
      const page = await this.#ask("tools/list", cursor ? { cursor } : {});
      if (page instanceof Error)
        throw new NotProbedError(`The server does not list its tools: ${page.message}`);
      if (!Array.isArray(page.tools)) throw new NoAnswerError("its list of tools has no tools");
      for (const tool of page.tools) if (typeof tool?.name === "string") tools.push(tool);
      cursor = page.nextCursor;
    } while (cursor);
    return tools;
  }

  /** Calls a tool: the request's URL is its name. A refusal has the status 400. @throws NoAnswerError, BoundReached */
  async send({ url, body }: ProbeRequest, signal?: AbortSignal): Promise<Answer> {
    const result = await this.#ask("tools/call", { name: url, arguments: JSON.parse(body) }, signal);
    if (result instanceof Error) return { status: 400, headers: {}, body: Buffer.from(result.message) };
    // A replay may be marked in `_meta`.
    const { _meta, isError, ...answer } = result;
    return { status: isError ? 400 : 200, headers: {}, body: Buffer.from(JSON.stringify(answer)) };
  }

  /** Calls a tool, and cancels the call or ends the session before its answer, if the server takes any time. @throws BoundReached */
  async cut(request: ProbeRequest, cut: Cut): Promise<void> {
    await this.#open();
    const cancelling = new AbortController();
    const ended = this.send(request, cancelling.signal).catch((error) => {
      if (!(error instanceof NoAnswerError)) throw error;
    });
    // The next turn hands the message over.
    await Promise.race([ended, pause(cut === "with a cancellation" ? 0 : CUT_MS)]);
    if (cut === "with a cancellation") cancelling.abort();
    else await this.close();
    await ended;
  }

  /** Runs the user's command, or else kills the server's process; the next call starts it. */
  async restart(): Promise<void> {
    if (this.#endpoint.restartCommand !== undefined) await runRestart(this.#endpoint.restartCommand);
    else kill(await this.#open());
    await this.close();
  }

  /** Ends the session. */
  async close(): Promise<void> {
    const session = this.#session;
    this.#session = undefined;
    await session?.then(({ client }) => client.close()).catch(() => {});
  }

  /** Sends a request. Returns the result, or the error with which the server refuses it. @throws NoAnswerError, BoundReached */
  async #ask(method: string, params: Record<string, unknown>, signal?: AbortSignal) {
    const session = await this.#open();
    const { ErrorCode, McpError, ResultSchema } = this.#sdk;
    this.#budget.transfer(Buffer.byteLength(JSON.stringify(params)));
    try {
      const options = { timeout: this.#budget.bounds.requestMs, ...(signal && { signal }) };
      return await session.client.request({ method, params }, ResultSchema, options);
    } catch (error) {
      const unanswered: readonly number[] = [ErrorCode.ConnectionClosed, ErrorCode.RequestTimeout];
      if (error instanceof McpError && !unanswered.includes(error.code)) return error;
      throw whyBroken(session, error);
    }
  }

  #open(): Promise<Session> {
    if (this.#session !== undefined) return this.#session;
    const opening = this.#connect(() => {
      if (this.#session === opening) this.#session = undefined;
    });
    this.#session = opening;
    return opening;
  }

  async #connect(onClose: () => void): Promise<Session> {
    await this.#budget.request(1);
    const { Client, connectUpstream, ErrorCode } = this.#sdk;
    const client = new Client({ name: "onceward-probe", version: VERSION });
    const transport = connectUpstream(this.#address, (id) => {
      const error = { code: ErrorCode.ConnectionClosed, message: "the answer broke off" };
      transport.onmessage?.({ jsonrpc: "2.0", id, error });
    });
    const session: Session = { client, transport };
    transport.onmessage = (message) => {
      try {
        this.#budget.transfer(Buffer.byteLength(JSON.stringify(message)));
      } catch (error) {
        session.broken = error as BoundReached;
        kill(session);
        void client.close();
      }
    };
    client.onerror = (error) => {
      session.broken ??= error;
    };
    client.onclose = onClose;
    await client.connect(transport, { timeout: this.#budget.bounds.requestMs }).catch((error) => {
      throw whyBroken(session, error);
    });
    return session;
  }
}

/** Whether a server is named by its URL, and not by a command. */
export function isUrl(mcp: string): boolean {
  return /^https?:\/\//.test(mcp);
}

function addressOf({ mcp = "", headers }: Endpoint, env: Environment): UpstreamAddress {
  if (isUrl(mcp)) {
    const sent = Object.entries(headers).map(([name, value]) => [name, expand(value, env)]);
    return { kind: "url", url: new URL(mcp), headers: Object.fromEntries(sent) };
  }
  // The credential of this program is not for the server.
  const { ONCEWARD_API_KEY: _, ...others } = env;
  const passed = Object.entries(others).filter((entry): entry is [string, string] => entry[1] !== undefined);
  // The shell's process becomes the server's: it can be killed.
  return { kind: "command", command: "sh", args: ["-c", `exec ${mcp}`], env: Object.fromEntries(passed) };
}

/** Kills the server's process, if the probe has started it. */
function kill({ transport }: Session): void {
  try {
    if ("pid" in transport && typeof transport.pid === "number") process.kill(transport.pid, "SIGKILL");
  } catch {
    // It has ended.
  }
}

/** Returns the bound that ended the session, or an error that says why there is no answer. */
function whyBroken({ broken }: Session, error: unknown): Error {
  if (broken instanceof BoundReached) return broken;
  return new NoAnswerError([...new Set([messageOf(error), ...(broken ? [broken.message] : [])])].join(": "));
}
