import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import type { Socket } from "node:net";

/**
 * Requests of one connection that may wait for their turn. HTTP/1.1 allows a client to send requests before it has read an answer
 * (RFC 9112, section 9.3.2), which no browser and hardly a library does. One read of a connection may bring two thousand.
 */
const MAX_WAITING = 16;

/**
 * Returns a listener that answers the requests of a connection one after the other, each when the operating system has the answer
 * before it, so that a peer that reads no answers has one in memory. A connection with more than 16 waiting requests is cut.
 */
export function answerInTurns(answer: RequestListener): RequestListener {
  const connections = new WeakMap<Socket, Turns>();
  return (incoming, outgoing) => {
    const { socket } = incoming;
    // The rest of what was read together with a request that cut the connection.
    if (socket.destroyed) return;
    const turns = connections.get(socket) ?? { isBusy: false, waiting: [] };
    connections.set(socket, turns);
    turns.waiting.push([incoming, outgoing]);
    if (!turns.isBusy) next(turns);
    else if (turns.waiting.length > MAX_WAITING) cut(socket);
  };

  function next(turns: Turns): void {
    const [incoming, outgoing] = turns.waiting.shift() ?? [];
    turns.isBusy = incoming !== undefined;
    // The answers of a connection that was cut are not read.
    if (incoming === undefined || outgoing === undefined || incoming.socket.destroyed) return;
    outgoing.once("close", () => next(turns));
    answer(incoming, outgoing);
  }
}

/** What node:http's parser takes for an upgrade: it leaves the rest of what was read alone. */
const STOP_PARSING = 2;

/**
 * Cuts a connection, and parses nothing more of it: node:http keeps what it makes of each request until the connection has closed,
 * after it has read from all others that have sent something. node:http has no public API that stops the parser.
 */
function cut(socket: Socket & { readonly parser?: { onIncoming: () => number } | null }): void {
  socket.destroy();
  if (socket.parser) socket.parser.onIncoming = () => STOP_PARSING;
}

interface Turns {
  /** Whether a request is being answered. */
  isBusy: boolean;
  readonly waiting: [IncomingMessage, ServerResponse][];
}
