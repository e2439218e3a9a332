import type { JSONRPCMessage, JSONRPCRequest, RequestId } from "@modelcontextprotocol/sdk/types.js";
import { NoEffectError, OutcomeUnknownError } from "@onceward/client/agents";
import { messageOf } from "./failure.ts";
import { wasNotSent } from "./upstream.ts";

/** A request that the upstream server has not answered. */
interface Pending {
  readonly resolve: (answer: JSONRPCMessage) => void;
  readonly reject: (error: Error) => void;
}

/** The proxy's own requests to the upstream server, which it answers once. */
export class UpstreamRequests {
  readonly #send: (message: JSONRPCMessage) => Promise<void>;
  /** Begins the ids of the proxy's own requests. No host has one that begins so. */
  readonly #prefix = `onceward-${crypto.randomUUID()}-`;
  readonly #pending = new Map<string, Pending>();
  #count = 0;

  /** @param send sends a message upstream. */
  constructor(send: (message: JSONRPCMessage) => Promise<void>) {
    this.#send = send;
  }

  /**
   * Sends a request upstream, with an id of its own. Resolves with its answer.
   *
   * @param onSend gets the id before the request is sent.
   * @throws OutcomeUnknownError if there is no answer within `timeoutMs`; NoEffectError if the request did not reach the server.
   */
  async ask(
    request: Pick<JSONRPCRequest, "method" | "params">,
    timeoutMs: number,
    onSend: (id: string) => void = () => {},
  ): Promise<JSONRPCMessage> {
    const id = `${this.#prefix}${++this.#count}`;
    onSend(id);
    const answered = new Promise<JSONRPCMessage>((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
    });
    const timer = setTimeout(() => this.fail(id, `no answer in ${timeoutMs} ms`), timeoutMs);
    try {
      this.#send({ jsonrpc: "2.0", id, ...request }).catch((error) => {
        if (!wasNotSent(error)) return this.fail(id, messageOf(error));
        this.#pending.get(id)?.reject(new NoEffectError(`The server did not take it: ${messageOf(error)}.`));
      });
      return await answered;
    } finally {
      clearTimeout(timer);
      this.#pending.delete(id);
    }
  }

  /**
   * Takes the answer to one of these requests; returns false for any other id. A second answer, or a late one, is dropped:
   * the first one is stored.
   */
  answer(id: RequestId, message: JSONRPCMessage): boolean {
    if (!`${id}`.startsWith(this.#prefix)) return false;
    this.#pending.get(`${id}`)?.resolve(message);
    this.#pending.delete(`${id}`);
    return true;
  }

  /** Ends a request, if it is one of these, with an OutcomeUnknownError. */
  fail(id: RequestId, why: string): void {
    this.#pending.get(`${id}`)?.reject(new OutcomeUnknownError(`The outcome is unknown: ${why}.`));
  }

  /** Ends all requests with an OutcomeUnknownError. */
  failAll(why: string): void {
    for (const id of this.#pending.keys()) this.fail(id, why);
  }
}
