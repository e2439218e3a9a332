import type { Readable, Writable } from "node:stream";
import {
  createConnectRouter,
  createContextKey,
  createContextValues,
  type HandlerContext,
} from "@connectrpc/connect";
import type { UniversalServerRequest as ServerRequest } from "@connectrpc/connect/protocol";
import { MAX_MESSAGE_BYTES } from "../../domain/limits.ts";
import type { Principal } from "../../domain/tenant.ts";
import { REPLY_COMPRESSIONS } from "../compression.ts";
import { toConnectError } from "../errors.ts";
import { type ConnectionInboundBudget, type OutboundBudget, reserveReply } from "../memory-budgets.ts";
import type { IncomingCall, Pipeline } from "../pipeline.ts";
import { messageLimits, parseTimeoutMs, type ReceivedMessage, TIMEOUT_HEADER } from "../read-message.ts";
import type { Route } from "../route.ts";
import { type Receive, splitRequest } from "./connect-bodies.ts";
import type { PageSite } from "./web-page.ts";

/** The parts that the requests of a connection share. */
export interface HttpConnection {
  readonly inbound: ConnectionInboundBudget;
  readonly outbound: OutboundBudget;
  readonly replies: ConnectionInboundBudget;
  /** The address of the other end. */
  readonly peer: string | undefined;
}

/** One request of a connection. */
interface Arrival extends HttpConnection {
  readonly response: Writable;
  readonly receive: Receive;
}

const ARRIVAL = createContextKey<Arrival | undefined>(undefined);

/**
 * Returns the handlers of Connect, gRPC-Web and JSON by path. Without a `site`, no cookie is looked at.
 *
 * connect-node would decompress and parse a message before the pipeline has authenticated its sender. So it
 * gets each request with an empty message, and the pipeline reads the message. connect-node recognises the
 * protocols and answers in them.
 */
export function createConnectHandlers(
  routes: readonly Route[],
  pipeline: Pipeline,
  site: PageSite | undefined,
) {
  const router = createConnectRouter({
    // Native gRPC has a separate port.
    grpc: false,
    acceptCompression: REPLY_COMPRESSIONS,
    writeMaxBytes: 2 * MAX_MESSAGE_BYTES,
  });
  for (const route of routes) {
    router.rpc(route.method, async (_empty: unknown, context: HandlerContext) => {
      try {
        // connect-node encodes the reply, in the request's protocol.
        return await pipeline.answer(route, new IncomingConnectCall(route, context, site), (reply) => reply);
      } catch (error) {
        throw toConnectError(error);
      }
    });
  }
  return new Map(
    router.handlers.map((handle) => [
      handle.requestPath,
      /** Answers a request, whose body is a separate argument; rejects only if the caller has left. */
      (request: ServerRequest, body: Readable, arrived: Omit<Arrival, "receive">) => {
        const { empty, receive } = splitRequest(request, body);
        const contextValues = createContextValues().set(ARRIVAL, { ...arrived, receive });
        return handle({ ...empty, contextValues });
      },
    ]),
  );
}

class IncomingConnectCall implements IncomingCall {
  readonly #route: Route;
  readonly #context: HandlerContext;
  readonly #site: PageSite | undefined;
  readonly #arrival: Arrival;

  constructor(route: Route, context: HandlerContext, site: PageSite | undefined) {
    const arrival = context.values.get(ARRIVAL);
    if (arrival === undefined) throw new Error("a request did not pass splitRequest");
    this.#route = route;
    this.#context = context;
    this.#site = site;
    this.#arrival = arrival;
  }

  get peer(): string | undefined {
    return this.#arrival.peer;
  }

  header(name: string): string | undefined {
    return this.#context.requestHeader.get(name) ?? undefined;
  }

  /**
   * The console's page sends a header that no form and no link can send, from its own origin. It administers: it makes no
   * claims.
   */
  get sessionCookie(): string | undefined {
    const { protocolName, requestMethod } = this.#context;
    const isOfPage =
      protocolName === "connect" &&
      requestMethod === "POST" &&
      this.header("connect-protocol-version") === "1" &&
      this.#route.role !== "CALLER";
    return isOfPage ? this.#site?.sessionCookie((name) => this.header(name)) : undefined;
  }

  get timeoutMs(): number | undefined {
    return parseTimeoutMs(this.header(TIMEOUT_HEADER));
  }

  async receive(principal: Principal): Promise<ReceivedMessage> {
    const { receive, inbound, outbound, replies, response } = this.#arrival;
    outbound.admit();
    await reserveReply(replies, principal, this.#route.method, response);
    return receive(messageLimits(this.#route.method), inbound, principal);
  }

  get cancelled(): boolean {
    return this.#context.signal.aborted;
  }

  get signal(): AbortSignal {
    return this.#context.signal;
  }
}
