import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { type ConnectionOptions, connect as connectTls } from "node:tls";

/** A TCP connection, or one of TLS, on which anything can be sent. */
export interface RawSocket {
  readonly socket: Socket;
  /** Everything that came back so far, as latin1. */
  received(): string;
  /** Resolves once the connection has ended, whichever way. */
  readonly closed: Promise<void>;
  /** Sends, and resolves once the bytes have left or the connection has ended. */
  send(bytes: string | Uint8Array): Promise<void>;
}

/** Opens one, over TLS if there is some. */
export async function openSocket(port: number, tls?: ConnectionOptions): Promise<RawSocket> {
  const address = { host: "127.0.0.1", port };
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

/** Sends bytes, and answers what came back once the server has closed the connection. */
export async function exchange(port: number, bytes: string | Uint8Array): Promise<string> {
  const { send, closed, received } = await openSocket(port);
  await send(bytes);
  await closed;
  return received();
}
