import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { universalRequestFromNodeRequest, universalResponseToNodeResponse } from "@connectrpc/connect-node";
import type { Logger } from "pino";
import {
  type InboundBudget,
  type OutboundBudget,
  type OutboundTotal,
  outboundOfHttpConnection,
  type RequestBudget,
} from "../bounds/memory-budgets.ts";
import type { Pipeline } from "../pipeline.ts";
import { takeTimeoutHeader } from "../receive/read-message.ts";
import type { Route } from "../route.ts";
import type { Tls } from "../tls.ts";
import { createConnectHandlers, createMetricsHandler, type HttpConnection } from "./connect-routes.ts";
import type { OpenApi } from "./openapi.ts";
import { createHttpPort, refuseRequest } from "./port.ts";
import type { WebPage } from "./web-page.ts";

export interface HttpServerOptions {
  readonly routes: readonly Route[];
  /** Answers `/metrics`; undefined: nothing does. */
  readonly tenantMetrics?: Route;
  readonly pipeline: Pipeline;
  readonly inboundBudget: InboundBudget;
  readonly outboundTotal: OutboundTotal;
  readonly replyBudget: InboundBudget;
  readonly requestBudget: RequestBudget;
  readonly log: Logger;
  /** The longest time that a request may take to arrive; a late request is cut off up to a second later. */
  readonly requestTimeoutMs: number;
  readonly tls: Tls | undefined;
  /**
   * Whether calls without a credential act for a tenant. Then the Host must be a loopback one: a page whose
   * name is made to resolve to this machine (DNS rebinding) would call as a local program.
   */
  readonly isAnonymous: boolean;
  readonly openApi: OpenApi;
  /** As `createPort`. */
  readonly maxPerAddress: number;
  /** Undefined: the console is off. */
  readonly console: WebPage | undefined;
}

const MAX_HEADERS_TIMEOUT_MS = 10_000;
const CHECKING_INTERVAL_MS = 1000;
const KEEP_ALIVE_MS = 65_000;
/**
 * A connection without traffic is cut after this: longer than any call takes, during which nothing is sent.
 */
const SILENCE_MS = 11 * 60_000;
/** A connection is closed after so many requests, so that load spreads. */
const MAX_REQUESTS_PER_CONNECTION = 10_000;
/** Each connection costs memory and a file descriptor; a reverse proxy needs far fewer. */
const MAX_CONNECTIONS = 10_000;

/**
 * Creates the port for browsers, curl and other clients without gRPC: Connect, gRPC-Web and JSON over HTTP/1.1. It does not
 * listen yet.
 */
export function createHttpServer(options: HttpServerOptions) {
  const { routes, pipeline, log, requestTimeoutMs, tls } = options;
  const handlers = createConnectHandlers(routes, pipeline, options.console?.site);
  const { tenantMetrics } = options;
  if (tenantMetrics !== undefined) handlers.set("/metrics", createMetricsHandler(tenantMetrics, pipeline));
  const headersTimeout = Math.min(MAX_HEADERS_TIMEOUT_MS, requestTimeoutMs);
  const limits = {
    headersTimeout,
    handshakeTimeout: headersTimeout,
    requestTimeout: requestTimeoutMs,
    connectionsCheckingInterval: CHECKING_INTERVAL_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
  };
  const connections = new WeakMap<Socket, HttpConnection>();
  function connectionOf(socket: Socket): HttpConnection {
    const known = connections.get(socket);
    if (known !== undefined) return known;
    const made = {
      inbound: options.inboundBudget.ofConnection(),
      outbound: outboundOfHttpConnection(options.outboundTotal),
      replies: options.replyBudget.ofConnection(),
      peer: socket.remoteAddress,
    };
    connections.set(socket, made);
    return made;
  }
  let draining = false;
  const answer = (request: IncomingMessage, response: ServerResponse) => {
    // connect-node removes its own listener when the response closes, which may be just before Node emits the
    // error of a connection that was cut: without another listener, that error would end the process.
    request.on("error", ignore);
    if (!hasUsableHost(request)) return refuseHost(response, "The Host header or the path is malformed.");
    if (options.isAnonymous && !isLoopbackHost(request))
      return refuseHost(response, "The Host header must be localhost or a loopback address.");
    const [path = ""] = (request.url ?? "").split("?", 1);
    const handle = handlers.get(path);
    if (handle === undefined) {
      if (draining) response.setHeader("connection", "close");
      if (options.openApi.answer(path, request, response)) return;
      if (options.console?.answer(path, request, response)) return;
      refuseRequest(response, 404, NOTHING_HERE);
      return;
    }
    // A result, a key that was made, and what a token may see are for their caller alone.
    response.setHeader("cache-control", "no-store");
    takeTimeoutHeader(request.headers);
    const connection = connectionOf(request.socket);
    const arrival = { ...connection, response };
    handle(universalRequestFromNodeRequest(request, response, undefined, undefined), request, arrival)
      .then((answered) => {
        if (draining || isTooMuchToDrop(request)) response.setHeader("connection", "close");
        const body = answered.body && countedUntilClosed(answered.body, response, connection.outbound);
        return universalResponseToNodeResponse({ ...answered, ...(body && { body }) }, response);
      })
      .catch((error: unknown) => {
        // The caller has left, or the answer can't be written.
        if (!response.destroyed && !request.socket.destroyed)
          log.error({ err: error }, "a call could not be answered");
        response.destroy();
      });
  };
  const port = createHttpPort(limits, tls, answer, options);
  const { server } = port;
  server.maxRequestsPerSocket = MAX_REQUESTS_PER_CONNECTION;
  server.maxConnections = MAX_CONNECTIONS;
  server.timeout = SILENCE_MS;
  return {
    ...port,
    /** Makes every answer close its connection from now on. Requests are still accepted. */
    startDraining(): void {
      draining = true;
    },
  };
}

/**
 * The rest of a refused message is read and dropped, so that its sender gets to the answer; a longer rest is
 * cut off.
 */
const MAX_DROPPED_BYTES = 1024 * 1024;

function isTooMuchToDrop({ complete, headers }: IncomingMessage): boolean {
  return !complete && Number(headers["content-length"] ?? 0) > MAX_DROPPED_BYTES;
}

/** Counts a reply's bytes in the outbound budget until its response closes. */
async function* countedUntilClosed(
  body: AsyncIterable<Uint8Array>,
  response: ServerResponse,
  outbound: OutboundBudget,
): AsyncIterable<Uint8Array> {
  for await (const piece of body) {
    // Others' replies have used up the memory since the call was admitted: its caller repeats it, and gets the same answer.
    if (outbound.isExhausted()) throw new Error("there are too many replies that were not read");
    outbound.countUntilClosed(response, piece.byteLength);
    yield piece;
  }
}

function ignore(): void {}

/**
 * connect-node makes a URL of the Host header without catching errors: a host such as `[` would end the
 * process. This check uses the same parser.
 */
function hasUsableHost({ url, headers: { host } }: IncomingMessage): boolean {
  return host !== undefined && URL.canParse(url ?? "", `http://${host}`);
}

const LOOPBACK_HOST = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;

function isLoopbackHost({ url, headers: { host } }: IncomingMessage): boolean {
  return [new URL(`http://${host}`), new URL(url ?? "", `http://${host}`)].every(({ hostname }) =>
    LOOPBACK_HOST.test(hostname),
  );
}

function refuseHost(response: ServerResponse, message: string): void {
  refuseRequest(response, 400, message, { connection: "close" });
}

const NOTHING_HERE =
  "There is nothing at this path. Calls are POST /onceward.v1.<Service>/<Method>; GET /openapi.yaml lists them.";
