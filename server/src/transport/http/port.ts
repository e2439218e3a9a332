import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type ServerOptions,
  type ServerResponse,
} from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { TlsOptions } from "node:tls";
import { countedAddress, createPort } from "../bounds/connections.ts";
import { HEADER_LIMITS, headerListBytes, MAX_HEADER_BYTES, MAX_HEADERS } from "../bounds/header-list.ts";
import type { RequestBudget } from "../bounds/memory-budgets.ts";
import { createAddressShares } from "../bounds/turn-shares.ts";
import type { Tls } from "../tls.ts";

/**
 * Creates a port that serves HTTP/1.1, with TLS if it is configured, and answers the requests of a connection in turns. It refuses
 * headers beyond the limits by 431. Node's `options` override those of `tls`.
 *
 * @param maxPerAddress As `createPort`.
 */
export function createHttpPort(
  options: ServerOptions & TlsOptions,
  tls: Tls | undefined,
  answer: RequestListener,
  { maxPerAddress, requestBudget }: { readonly maxPerAddress: number; readonly requestBudget: RequestBudget },
) {
  const limited = { ...options, maxHeaderSize: MAX_HEADER_BYTES };
  const onRequest = answerInTurns((request, response) => {
    if (request.rawHeaders.length > 2 * MAX_HEADERS)
      refuseRequest(response, 431, TOO_MANY_HEADERS, { connection: "close" });
    else answer(request, response);
  }, requestBudget);
  const server =
    tls === undefined
      ? createServer(limited, onRequest)
      : tls.follow(createSecureServer({ ...tls.options, ...limited }, onRequest));
  server.on("clientError", refuseUnreadable);
  return { server, ...createPort(server, maxPerAddress) };
}

const TOO_MANY_HEADERS = `The headers ${HEADER_LIMITS}.`;

/**
 * Returns a line of JSON that says what to send in place of a request that is not a call, as Connect writes errors. The code is the
 * one that its clients read in the status: https://connectrpc.com/docs/protocol#http-to-error-code
 */
export function misdirected(status: number, message: string): string {
  return `${JSON.stringify({ code: status === 404 ? "unimplemented" : "invalid_argument", message })}\n`;
}

/** Answers a request that is not a call with `misdirected`. */
export function refuseRequest(
  response: ServerResponse,
  status: number,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  const ofJson = { "content-type": "application/json", "cache-control": "no-store" };
  response.writeHead(status, { ...ofJson, ...headers }).end(misdirected(status, message));
}

/** Answers a request whose method is not among `allow`. */
export function refuseMethod(response: ServerResponse, allow: string): void {
  refuseRequest(response, 405, `The method must be ${allow}.`, { allow });
}

/** The statuses that Node answers errors of its parser with, and what they say; of all others: NOT_HTTP. */
const PARSER_ERRORS: Readonly<Record<string, readonly [status: string, message: string]>> = {
  HPE_HEADER_OVERFLOW: ["431 Request Header Fields Too Large", TOO_MANY_HEADERS],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: ["413 Payload Too Large", "The request's chunk extensions are too long."],
  ERR_HTTP_REQUEST_TIMEOUT: ["408 Request Timeout", "The request did not arrive in time."],
};
const NOT_HTTP = [
  "400 Bad Request",
  "This port reads HTTP/1.1, and the request is not. gRPC has a port of its own: ONCEWARD_GRPC_PORT.",
] as const;

/** Ends a connection as Node does, unless an answer has begun, with a status and a line that says what is wrong. */
function refuseUnreadable(
  { code = "" }: NodeJS.ErrnoException,
  socket: Duplex & { readonly _httpMessage?: ServerResponse | null },
): void {
  if (socket.writable && !socket._httpMessage?.headersSent) {
    const [status, message] = PARSER_ERRORS[code] ?? NOT_HTTP;
    const body = misdirected(400, message);
    const head = ["connection: close", "content-type: application/json", `content-length: ${body.length}`];
    socket.write(`HTTP/1.1 ${[status, ...head].join("\r\n")}\r\n\r\n${body}`);
  }
  socket.destroy();
}

/**
 * Requests of one connection that may wait for their turn. HTTP/1.1 allows a client to send requests before it has read
 * an answer (RFC 9112, section 9.3.2), which no browser and hardly a library does.
 */
export const MAX_WAITING = 16;

interface Waiting {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

interface Connection {
  readonly requests: ReturnType<RequestBudget["ofConnection"]>;
  readonly enqueue: ReturnType<typeof createConnectionTurns>;
}

/**
 * Returns a listener that answers the requests of a connection one after the other, each when the operating system has
 * the answer before it: a peer that sends requests and reads no answers has one answer in memory. A connection with more
 * than 16 waiting requests is cut. All connections of an address share its part of a turn of the event loop, so that a
 * burst of one peer delays others by some milliseconds. A connection whose requests have no room in the budget is cut, too.
 */
export function answerInTurns(answer: RequestListener, budget: RequestBudget): RequestListener {
  const connections = new WeakMap<Socket, Connection>();
  const peers = createAddressShares();
  return (request, response) => {
    const { socket } = request;
    // The rest of what was parsed together with a request that cut the connection.
    if (socket.destroyed) return;
    let connection = connections.get(socket);
    if (connection === undefined) {
      const address = countedAddress(socket.remoteAddress ?? "");
      const requests = budget.ofConnection(address);
      socket.once("close", requests.end);
      const enqueue = createConnectionTurns((waiting) => {
        const drop = peers.run(address, () => answer(waiting.request, waiting.response));
        if (drop !== undefined) waiting.response.once("close", drop);
      });
      connection = { requests, enqueue };
      connections.set(socket, connection);
    }
    const closed = connection.requests.open(headerListBytes(request.rawHeaders));
    if (closed !== undefined) response.once("close", closed);
    if (closed === undefined || !connection.enqueue({ request, response })) cut(socket);
  };
}

/** What node:http's parser takes for an upgrade: it leaves the rest of what was read alone. */
const STOP_PARSING = 2;

/**
 * Cuts a connection, and parses nothing more of it. One read may bring two thousand requests, and node:http keeps what it makes of
 * each until the connection has closed, after it has read from all others that have sent something: a few hundred connections would
 * take all memory. node:http has no public API that stops the parser.
 */
function cut(socket: Socket & { readonly parser?: { onIncoming: () => number } | null }): void {
  socket.destroy();
  if (socket.parser) socket.parser.onIncoming = () => STOP_PARSING;
}

/** Returns a function that has a connection's requests answered, each when its turn comes; false: too many wait. */
function createConnectionTurns(answer: (waiting: Waiting) => void): (added: Waiting) => boolean {
  const waiting: Waiting[] = [];
  let isBusy = false;

  function startNext(): void {
    const next = waiting.shift();
    isBusy = next !== undefined;
    if (next === undefined) return;
    // Also emitted when the connection is cut; then the requests after it are answered to no one, and cost nothing.
    next.response.once("close", startNext);
    if (next.request.socket.destroyed) next.response.destroy();
    else answer(next);
  }

  return (added) => {
    if (waiting.length >= MAX_WAITING) return false;
    waiting.push(added);
    if (!isBusy) startNext();
    return true;
  };
}
