import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Message } from "@bufbuild/protobuf";
import type { ConnectRouter, HandlerContext } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { Refusal } from "../domain/refusal.ts";
import { toConnectError } from "./errors.ts";
import { MAX_READ_BYTES } from "./grpc-server.ts";
import { closeHttp, listenHttp } from "./http-lifecycle.ts";
import type { IncomingCall, Pipeline } from "./pipeline.ts";
import type { Route } from "./route.ts";
import { takeTimeoutHeader } from "./timeouts.ts";

/** The port for browsers, curl and everything without gRPC: Connect, gRPC-Web and JSON over HTTP/1.1. */
export interface HttpServer {
  /** The port it listens on. */
  listen(host: string, port: number): Promise<number>;
  /** Lets requests finish for so long, then closes what is left. */
  close(graceMs: number): Promise<void>;
}

/** A request has this long to send its headers, and its whole body. */
const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 30_000;
const KEEP_ALIVE_MS = 65_000;
const MAX_HEADER_BYTES = 16 * 1024;
/** A reverse proxy may pipeline many; a connection that sent this many starts over, so that load spreads. */
const MAX_REQUESTS_PER_CONNECTION = 10_000;

/** @see HttpServer */
export function createHttpServer(routes: readonly Route[], pipeline: Pipeline): HttpServer {
  const handle = connectNodeAdapter({
    routes: (router) => addRoutes(router, routes, pipeline),
    readMaxBytes: MAX_READ_BYTES,
    writeMaxBytes: MAX_READ_BYTES,
  });
  const options = {
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    maxHeaderSize: MAX_HEADER_BYTES,
  };
  const server: Server = createServer(options, (request, response) => {
    if (!hasUsableHost(request)) return refuseHost(response);
    takeTimeoutHeader(request.headers);
    handle(request, response);
  });
  server.maxRequestsPerSocket = MAX_REQUESTS_PER_CONNECTION;
  return {
    listen: (host, port) => listenHttp(server, host, port),
    close: (graceMs) => closeHttp(server, graceMs),
  };
}

/**
 * connect-node makes a URL of the Host header, outside of any try: a host such as `[` would end the process. Told here
 * by the same means.
 */
function hasUsableHost({ url, headers: { host } }: IncomingMessage): boolean {
  return host !== undefined && URL.canParse(url ?? "", `http://${host}`);
}

function refuseHost(response: ServerResponse): void {
  response.writeHead(400, { "content-type": "application/json", connection: "close" });
  response.end(
    JSON.stringify({ code: "invalid_argument", message: "The Host header or the path is malformed." }),
  );
}

function addRoutes(router: ConnectRouter, routes: readonly Route[], pipeline: Pipeline): void {
  for (const route of routes) {
    router.rpc(route.method, async (request: Message, context: HandlerContext) => {
      try {
        return await pipeline(route, new IncomingConnectCall(request, context));
      } catch (error) {
        throw error instanceof Refusal ? toConnectError(error) : error;
      }
    });
  }
}

class IncomingConnectCall implements IncomingCall {
  readonly #request: Message;
  readonly #context: HandlerContext;

  constructor(request: Message, context: HandlerContext) {
    this.#request = request;
    this.#context = context;
  }

  header(name: string): string | undefined {
    return this.#context.requestHeader.get(name) ?? undefined;
  }

  /** As the client declared it; what it doesn't declare, connect-node bounds while it reads. */
  get messageBytes(): number | undefined {
    const declared = this.header("content-length");
    return declared === undefined ? undefined : Number(declared);
  }

  read(): Message {
    return this.#request;
  }

  get cancelled(): boolean {
    return this.#context.signal.aborted;
  }

  get signal(): AbortSignal {
    return this.#context.signal;
  }
}
