import { once } from "node:events";
import { connect, type Socket } from "node:net";

/** A TCP connection on which anything can be sent. */
export interface RawSocket {
  readonly socket: Socket;
  /** Everything that came back so far, as latin1. */
  received(): string;
  /** Resolves once the connection has ended, whichever way. */
  readonly closed: Promise<void>;
  /** Sends, and resolves once the bytes have left or the connection has ended. */
  send(bytes: string | Uint8Array): Promise<void>;
}

export async function openSocket(port: number): Promise<RawSocket> {
  const socket = connect({ host: "127.0.0.1", port });
  socket.on("error", () => {});
  const chunks: Buffer[] = [];
  socket.on("data", (chunk: Buffer) => chunks.push(chunk));
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  await once(socket, "connect");
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
