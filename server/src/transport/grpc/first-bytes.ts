import type { Socket } from "node:net";

/** The start of a request line, but not of HTTP/2's preface: https://www.rfc-editor.org/rfc/rfc9113#section-3.4 */
const HTTP1 = /^(?!PRI )[A-Z]+ /;
/** Says to a client of another protocol which port it looks for. */
export const OTHER_PORT =
  "This port speaks gRPC over HTTP/2. JSON, Connect and gRPC-Web have another port: ONCEWARD_HTTP_PORT.\n";
/** Answers a request of HTTP/1.1. */
export const HTTP1_ANSWER = [
  "HTTP/1.1 400 Bad Request",
  "connection: close",
  "content-type: text/plain",
  `content-length: ${OTHER_PORT.length}`,
  "",
  OTHER_PORT,
].join("\r\n");

/**
 * Waits for the first bytes of connections, because the server begins HTTP/2 with bytes of its own, which no client of HTTP/1.1 can
 * read.
 *
 * @param limitMs A connection whose peer sends nothing for so long is cut.
 * @param begin Called with each connection that has begun, unless it begins with a request of HTTP/1.1.
 * @param refuse Called with each of the others.
 */
export function createFirstBytes(
  limitMs: number,
  { begin, refuse }: { readonly begin: (socket: Socket) => void; readonly refuse: (socket: Socket) => void },
) {
  /** Stops waiting for a connection's first bytes. */
  const waiting = new Map<Socket, () => void>();
  let isStopped = false;
  return {
    /** Waits for the first bytes of a connection. */
    watch(socket: Socket): void {
      socket.on("error", ignore);
      if (isStopped) {
        begin(socket);
        return;
      }
      const received = (bytes: Buffer) => {
        stop();
        if (HTTP1.test(bytes.toString("latin1", 0, MAX_LINE_START))) {
          refuse(socket);
        } else {
          socket.unshift(bytes);
          begin(socket);
        }
      };
      const timer = setTimeout(() => socket.destroy(), limitMs).unref();
      const stop = () => {
        clearTimeout(timer);
        waiting.delete(socket);
        socket.off("close", stop).off("data", received).pause();
      };
      waiting.set(socket, stop);
      socket.on("close", stop).on("data", received);
    },
    /** Begins all connections at once, and those that come later: HTTP/2 tells their peers that the server ends. */
    stop(): void {
      isStopped = true;
      for (const [socket, stop] of waiting) {
        stop();
        if (!socket.destroyed) begin(socket);
      }
    },
  };
}

/** The longest method of HTTP, and what follows it. */
const MAX_LINE_START = 32;

function ignore(): void {}
