import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { type ConnectionOptions, connect as connectTls } from "node:tls";

/** A TCP or TLS connection on which a test can send any bytes. */
export interface RawSocket {
  readonly socket: Socket;
  /** Returns all received bytes so far, as latin1. */
  received(): string;
  /** Resolves when the connection has ended in any way. */
  readonly closed: Promise<void>;
  /** Sends bytes; resolves when they are flushed or the connection has ended. */
  send(bytes: string | Uint8Array): Promise<void>;
}

/** By the port of a server: its Unix socket, which connections without TLS are opened to instead. */
export const UNIX_SOCKETS = new Map<number, string>();

/** Opens a connection, over TLS if `tls` is given. */
export async function openSocket(port: number, tls?: ConnectionOptions): Promise<RawSocket> {
  const path = tls === undefined ? UNIX_SOCKETS.get(port) : undefined;
  const address = path === undefined ? { host: "127.0.0.1", port } : { path };
  const socket = tls === undefined ? connect(address) : connectTls({ ...tls, ...address });
  socket.on("error", () => {});
  const chunks: Buffer[] = [];
  socket.on("data", (chunk: Buffer) => chunks.push(chunk));
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  await once(socket, tls === undefined ? "connect" : "secureConnect");
  return {
    socket,
    closed,
    received: () => Buffer.concat(chunks).toString("latin1"),
    async send(bytes) {
      if (!socket.writable || socket.write(bytes)) return;
      const drained = new Promise<void>((resolve) => socket.once("drain", () => resolve()));
      await Promise.race([drained, closed]);
    },
  };
}

/** Sends bytes; resolves with all received bytes when the server has closed the connection. */
export async function exchange(port: number, bytes: string | Uint8Array): Promise<string> {
  const { send, closed, received } = await openSocket(port);
  await send(bytes);
  await closed;
  return received();
}
