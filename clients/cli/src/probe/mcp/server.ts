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
  /** The sending of the last message. */
  sent: Promise<void>;
  /** Why it broke off: a bound of the probe, or else the last error of the connection. */
  broken?: Error;
}

/** A server of Model Context Protocol, with one session at a time. A call after the end of a session opens the next one. */
export class McpServer {
  readonly #endpoint: Endpoint;
  readonly #address: UpstreamAddress;
  readonly #budget: Budget;
  readonly #sdk: Sdk;
  #session: Promise<Session> | undefined;

  /** @param endpoint its `mcp` is a URL, or a command for the shell. */
  constructor(sdk: Sdk, endpoint: Endpoint, budget: Budget, env: Environment) {
    this.#sdk = sdk;
    this.#endpoint = endpoint;
    this.#budget = budget;
    this.#address = addressOf(endpoint, env);
  }

  /** Whether the probe starts the server's process. */
  get isProcess(): boolean {
    return this.#address.kind === "command";
  }

  /**
   * Returns the tools of all pages.
   *
   * @throws NoAnswerError, BoundReached. NotProbedError if the server refuses to list them.
   */
  async listTools(): Promise<readonly Tool[]> {
    const tools: Tool[] = [];
    for (let cursor: unknown, isFirst = true; isFirst || cursor; isFirst = false) {
      await this.#budget.request(1);
      const page = await this.#ask("tools/list", cursor ? { cursor } : {});
      if (page instanceof Error)
        throw new NotProbedError(`The server does not list its tools: ${page.message}`);
      if (!Array.isArray(page.tools)) throw new NoAnswerError("its list of tools has no tools");
      tools.push(...page.tools.filter((tool) => typeof tool?.name === "string"));
      cursor = page.nextCursor;
    }
    return tools;
  }

  /** Calls a tool: the request's URL is its name. A refusal has the status 400. @throws NoAnswerError, BoundReached */
  async send({ url, body }: ProbeRequest, signal?: AbortSignal): Promise<Answer> {
    const result = await this.#ask("tools/call", { name: url, arguments: JSON.parse(body) }, signal);
    if (result instanceof Error) return { status: 400, headers: {}, body: Buffer.from(result.message) };
    // What says that the result is a replay is not a part of it.
    const { _meta, isError, ...answer } = result;
    return {
      status: isError === true ? 400 : 200,
      headers: {},
      body: Buffer.from(JSON.stringify(answer)),
    };
  }

  /** Calls a tool, and ends the session or cancels the call. Resolves with whether the answer came first. @throws BoundReached */
  async cut(request: ProbeRequest, cut: Cut): Promise<boolean> {
    const session = await this.#open();
    const cancelling = new AbortController();
    let isAnswered = false;
    const answered = this.send(request, cancelling.signal).then(
      () => {
        isAnswered = true;
      },
      (error) => {
        if (!(error instanceof NoAnswerError)) throw error;
      },
    );
    if (cut === "with a cancellation") {
      // Once the message is handed over, which the next turn does.
      await pause(0);
      await Promise.race([answered, session.sent.catch(() => {}), pause(CUT_MS)]);
      cancelling.abort();
    } else {
      await Promise.race([answered, pause(CUT_MS)]);
      await this.close();
    }
    await answered;
    return isAnswered;
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
  async #ask(method: string, params: Readonly<Record<string, unknown>>, signal?: AbortSignal) {
    const session = await this.#open();
    const { ErrorCode, McpError, ResultSchema } = this.#sdk;
    this.#budget.transfer(Buffer.byteLength(JSON.stringify(params)));
    try {
      const options = { timeout: this.#budget.bounds.requestMs, ...(signal && { signal }) };
      return await session.client.request({ method, params: { ...params } }, ResultSchema, options);
    } catch (error) {
      const { ConnectionClosed, RequestTimeout } = ErrorCode;
      const isRefusal =
        error instanceof McpError && error.code !== ConnectionClosed && error.code !== RequestTimeout;
      if (isRefusal) return error;
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
    const session: Session = { client, transport, sent: Promise.resolve() };
    const send = transport.send.bind(transport);
    transport.send = (message, options) => {
      session.sent = send(message, options);
      return session.sent;
    };
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
      if (!(session.broken instanceof BoundReached)) session.broken = error;
    };
    client.onclose = onClose;
    try {
      await client.connect(transport, { timeout: this.#budget.bounds.requestMs });
    } catch (error) {
      throw whyBroken(session, error);
    }
    return session;
  }
}

function addressOf({ mcp = "", headers }: Endpoint, env: Environment): UpstreamAddress {
  const url = URL.parse(mcp);
  if (url?.protocol === "http:" || url?.protocol === "https:") {
    const sent = Object.entries(headers).map(([name, value]) => [name, expand(value, env)]);
    return { kind: "url", url, headers: Object.fromEntries(sent) };
  }
  const passed = Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined);
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
  const text = messageOf(error);
  return new NoAnswerError(
    broken === undefined || text.includes(broken.message) ? text : `${text}: ${broken.message}`,
  );
}
