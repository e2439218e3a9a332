import type { IncomingMessage, OutgoingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { pipeline } from "node:stream";
import { endToEnd, ofUpgrade, pairsOf } from "./headers.ts";
import type { Upstream } from "./upstream.ts";

/** Passes a request that no route guards, and its response, as streams with their trailers. Resolves when both have ended. */
export function pass(upstream: Upstream, incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const request = upstream.send(incoming, endToEnd(incoming.rawHeaders, ["expect"]), "shared");
    outgoing.once("close", () => {
      request.destroy();
      resolve();
    });
    request.on("error", () => refuse(outgoing, 502));
    request.on("response", (response) => {
      outgoing.writeHead(response.statusCode ?? 502, response.statusMessage, endToEnd(response.rawHeaders));
      // What was written can't be taken back: the client sees that the response is cut short.
      response.on("error", () => outgoing.destroy());
      response.on("end", () => {
        passTrailers(response, outgoing);
        outgoing.end();
      });
      response.pipe(outgoing, { end: false });
    });
    incoming.on("error", () => request.destroy());
    incoming.on("end", () => {
      passTrailers(incoming, request);
      request.end();
    });
    incoming.pipe(request, { end: false });
  });
}

function passTrailers({ rawTrailers }: IncomingMessage, to: OutgoingMessage): void {
  if (rawTrailers.length > 0) to.addTrailers(pairsOf(rawTrailers) as [string, string][]);
}

/** Passes an upgrade, such as a WebSocket's, and then the bytes of both sides. Resolves when the connection has ended. */
export function passUpgrade(
  upstream: Upstream,
  incoming: IncomingMessage,
  socket: Duplex,
  head: Buffer,
): Promise<void> {
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

/** Answers with a status and no body, if nothing has been answered yet. */
export function refuse(
  outgoing: ServerResponse,
  status: number,
  headers: Readonly<Record<string, string>> = {},
): void {
  if (outgoing.headersSent) outgoing.destroy();
  else outgoing.writeHead(status, { ...headers, connection: "close" }).end();
}

function headOf({ statusCode, statusMessage }: IncomingMessage, raw: readonly string[]): string {
  const lines = pairsOf(raw).map(([name, value]) => `${name}: ${value}`);
  return [`HTTP/1.1 ${statusCode} ${statusMessage}`, ...lines, "", ""].join("\r\n");
}
