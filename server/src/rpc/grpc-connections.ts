import { constants, type ServerHttp2Session } from "node:http2";
import { type AddressInfo, createServer, type Socket } from "node:net";

/** The connections of native gRPC: how they come, how they are asked to leave, and how they end. */
export interface GrpcConnections {
  /** The port it listens on. */
  listen(host: string, port: number): Promise<number>;
  /** Told of a session whenever a call comes in on it; answers whether it is one of these. Cheap: for every call. */
  watch(session: ServerHttp2Session): boolean;
  /** Takes no new connection, asks those that are there to leave, and resolves once no call comes in any more. */
  farewell(): Promise<void>;
  /** Ends what is left, whatever is going on there. */
  destroy(): void;
}

export interface GrpcConnectionsOptions {
  /** Hands a new connection to grpc-js. */
  readonly accept: (socket: Socket) => void;
  /** A connection is asked to leave so long after its first call, ±10 %, so that load spreads to new replicas. */
  readonly maxAgeMs: number;
}

/** Each costs memory and a file descriptor; a client needs one. */
const MAX_CONNECTIONS = 10_000;
/** No stream is refused by this GOAWAY. https://www.rfc-editor.org/rfc/rfc9113#section-6.8 */
const MAX_STREAM_ID = 2 ** 31 - 1;
/** By now a client has read the GOAWAY, and what it had sent before has arrived: many times a round trip. */
const LATE_CALLS_MS = 500;
/** A connection that has been asked to leave is ended after this: longer than a wait. */
const LEAVING_MS = 70_000;

/**
 * grpc-js, where it asks a connection to leave, refuses from that moment what the client had sent before it knew. Not
 * every client repeats such a call by itself, and so it is done here in two steps, as RFC 9113 has it: a GOAWAY that
 * refuses nothing, and the closing once no call can be on its way any more.
 */
export function createGrpcConnections({ accept, maxAgeMs }: GrpcConnectionsOptions): GrpcConnections {
  const sockets = new Set<Socket>();
  const sessions = new Map<ServerHttp2Session, NodeJS.Timeout>();
  const listener = createServer((socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    accept(socket);
  });
  listener.maxConnections = MAX_CONNECTIONS;
  let boundPort: number | undefined;

  function watch(session: ServerHttp2Session): boolean {
    if (sessions.has(session)) return true;
    if (session.socket.localPort !== boundPort) return false;
    const ageMs = maxAgeMs * (0.9 + 0.2 * Math.random());
    sessions.set(
      session,
      later(ageMs, () => leave(session)),
    );
    session.once("close", () => {
      clearTimeout(sessions.get(session));
      sessions.delete(session);
    });
    return true;
  }

  function leave(session: ServerHttp2Session): void {
    askToLeave(session);
    const closing = later(LATE_CALLS_MS, () => {
      session.close();
      sessions.set(
        session,
        later(LEAVING_MS, () => session.destroy()),
      );
    });
    sessions.set(session, closing);
  }

  return {
    listen: (host, port) =>
      new Promise((resolve, reject) => {
        listener.once("error", reject);
        listener.listen(port, host, () => {
          listener.off("error", reject);
          boundPort = (listener.address() as AddressInfo).port;
          resolve(boundPort);
        });
      }),
    watch,
    async farewell() {
      listener.close();
      if (sessions.size === 0) return;
      for (const session of sessions.keys()) askToLeave(session);
      await new Promise((resolve) => setTimeout(resolve, LATE_CALLS_MS));
    },
    destroy() {
      for (const socket of sockets) socket.destroy();
    },
  };
}

function askToLeave(session: ServerHttp2Session): void {
  if (!session.closed && !session.destroyed) session.goaway(constants.NGHTTP2_NO_ERROR, MAX_STREAM_ID);
}

/** A timer that keeps no process alive. */
function later(delayMs: number, work: () => void): NodeJS.Timeout {
  return setTimeout(work, delayMs).unref();
}
