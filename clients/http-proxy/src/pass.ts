import type { ClientRequest, IncomingMessage, OutgoingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { pipeline } from "node:stream";
import { endToEnd, endToEndTrailers, hasBody, ofUpgrade, pairsOf, statusText } from "./headers.ts";
import type { Upstream } from "./upstream.ts";

/** Methods without an effect (RFC 9110, 9.2.1): such a request may be sent again. */
const SAFE: ReadonlySet<string | undefined> = new Set(["GET", "HEAD", "OPTIONS", "TRACE"]);

/** Passes a request that no route guards, and its response, as streams with their trailers. Resolves when both have ended. */
export function pass(upstream: Upstream, incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    outgoing.once("close", resolve);
    if (SAFE.has(incoming.method) && !hasBody(incoming)) passSafe(upstream, incoming, outgoing, "shared");
    else passStream(upstream, incoming, outgoing);
  });
}

/** Passes a request that may be sent again, which it is if the service closes a shared connection just as it is used. */
function passSafe(
  upstream: Upstream,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  connection: "shared" | "own",
): void {
  const request = begin(upstream, incoming, outgoing, connection);
  request.on("error", () => {
    const hasBegun = outgoing.headersSent || outgoing.destroyed;
    if (request.reusedSocket && !hasBegun) passSafe(upstream, incoming, outgoing, "own");
    else refuse(outgoing, 502);
  });
  incoming.resume();
  request.end();
}

function passStream(upstream: Upstream, incoming: IncomingMessage, outgoing: ServerResponse): void {
  const request = begin(upstream, incoming, outgoing, "own");
  request.on("error", () => refuse(outgoing, 502));
  incoming.on("error", () => request.destroy());
  incoming.on("end", () => {
    passTrailers(incoming, request);
    request.end();
  });
  incoming.pipe(request, { end: false });
}

/** Begins a request of the upstream service, whose response becomes the outgoing one. */
function begin(
  upstream: Upstream,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  connection: "shared" | "own",
): ClientRequest {
  const request = upstream.send(incoming, endToEnd(incoming.rawHeaders, ["expect"]), connection);
  outgoing.once("close", () => request.destroy());
  // Without a listener, Node ends the connection and reports nothing.
  request.on("upgrade", (_, socket) => {
    socket.destroy();
    refuse(outgoing, 502);
  });
  request.on("response", (response) => {
    const { statusCode: status = 0 } = response;
    // Such as 099, with which Node writes no response, and 101, which ends no request.
    if (status < 200) {
      request.destroy();
      refuse(outgoing, 502);
      return;
    }
    outgoing.writeHead(status, statusText(response), endToEnd(response.rawHeaders));
    // What was written can't be taken back: the client sees that the response is cut short.
    response.on("error", () => outgoing.destroy());
    response.on("end", () => {
      passTrailers(response, outgoing);
      outgoing.end();
    });
    response.pipe(outgoing, { end: false });
  });
  return request;
}

function passTrailers({ rawTrailers }: IncomingMessage, to: OutgoingMessage): void {
  if (rawTrailers.length > 0) to.addTrailers(endToEndTrailers(rawTrailers) as [string, string][]);
}

/** A connection that a client asks to upgrade, and how long it may carry nothing, in milliseconds. */
interface Upgrade {
  readonly incoming: IncomingMessage;
  readonly socket: Duplex;
  readonly head: Buffer;
  readonly idleMs: number;
}

/** Passes an upgrade, such as a WebSocket's, and then the bytes of both sides. Resolves when the connection has ended. */
export function passUpgrade(upstream: Upstream, { incoming, socket, head, idleMs }: Upgrade): Promise<void> {
  // What goes in either direction is written to or read from this side.
  if (socket instanceof Socket) socket.setTimeout(idleMs, () => socket.destroy());
  return new Promise((resolve) => {
    const request = upstream.send(incoming, ofUpgrade(incoming.rawHeaders), "own");
    socket.on("error", () => socket.destroy());
    socket.once("close", () => {
      request.destroy();
      resolve();
    });
    request.on("error", () => socket.destroy());
    request.on("response", (response) => {
      // The upstream service refuses the upgrade.
      socket.write(
        headOf(response, [...endToEnd(response.rawHeaders, ["transfer-encoding"]), "Connection", "close"]),
      );
      pipeline(response, socket, () => socket.destroy());
    });
    request.on("upgrade", (response, other, otherHead) => {
      socket.write(headOf(response, ofUpgrade(response.rawHeaders)));
      socket.write(otherHead);
      other.write(head);
      other.on("error", () => socket.destroy());
      socket.once("close", () => other.destroy());
      other.pipe(socket);
      socket.pipe(other);
    });
    request.end();
  });
}

/** Answers with a status and no body, if nothing has been answered yet; ends a response that has begun. */
export function refuse(
  outgoing: ServerResponse,
  status: number,
  headers: Readonly<Record<string, string>> = {},
): void {
  // A service may answer, and close its connection, before it has read the whole request.
  if (outgoing.writableEnded) return;
  if (outgoing.headersSent) outgoing.destroy();
  else outgoing.writeHead(status, { ...headers, connection: "close" }).end();
}

function headOf({ statusCode, statusMessage }: IncomingMessage, raw: readonly string[]): string {
  const lines = pairsOf(raw).map(([name, value]) => `${name}: ${value}`);
  return [`HTTP/1.1 ${statusCode} ${statusMessage}`, ...lines, "", ""].join("\r\n");
}
