import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type ServerOptions,
  type ServerResponse,
} from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { Socket } from "node:net";
import type { TlsOptions } from "node:tls";
import { countedAddress, createPort } from "../connections.ts";
import type { Tls } from "../tls.ts";
import { createAddressShares } from "../turn-shares.ts";

/**
 * Creates a port that serves HTTP/1.1, with TLS if it is configured, and answers the requests of a connection in turns. Node's
 * `options` override those of `tls`.
 *
 * @param maxPerAddress As `createPort`.
 */
export function createHttpPort(
  options: ServerOptions & TlsOptions,
  tls: Tls | undefined,
  answer: RequestListener,
  maxPerAddress: number,
) {
  const onRequest = answerInTurns(answer);
  const server =
    tls === undefined
      ? createServer(options, onRequest)
      : tls.follow(createSecureServer({ ...tls.options, ...options }, onRequest));
  return { server, ...createPort(server, maxPerAddress) };
}

/**
 * Requests of one connection that may wait for their turn. HTTP/1.1 allows a client to send requests before it has read
 * an answer (RFC 9112, section 9.3.2), which no browser and hardly a library does.
 */
const MAX_WAITING = 16;

interface Waiting {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/**
 * Returns a listener that answers the requests of a connection one after the other, each when the operating system has
 * the answer before it: a peer that sends requests and reads no answers has one answer in memory. A connection with more
 * than 16 waiting requests is cut. All connections of an address share its part of a turn of the event loop, so that a
 * burst of one peer delays others by some milliseconds.
 */
export function answerInTurns(answer: RequestListener): RequestListener {
  const connections = new WeakMap<Socket, ReturnType<typeof createConnectionTurns>>();
  const peers = createAddressShares();
  return (request, response) => {
    const { socket } = request;
    // The rest of what was parsed together with a request that cut the connection.
    if (socket.destroyed) return;
    let enqueue = connections.get(socket);
    if (enqueue === undefined) {
      const address = countedAddress(socket.remoteAddress ?? "");
      enqueue = createConnectionTurns((waiting) => {
        const drop = peers.run(address, () => answer(waiting.request, waiting.response));
        if (drop !== undefined) waiting.response.once("close", drop);
      });
      connections.set(socket, enqueue);
    }
    if (!enqueue({ request, response })) cut(socket);
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
    // Also emitted when the connection is cut; then the requests behind it are answered to nobody, and cost nothing.
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
