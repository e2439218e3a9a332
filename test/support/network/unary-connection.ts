import { once } from "node:events";
import { connect } from "node:net";
import { END_HEADERS, END_STREAM, FRAME, frame, headerBlock, openWindows, PREFACE } from "./http2-frames.ts";

/**
 * A gRPC connection that costs as little CPU as possible, so that the server is measured: it writes frames
 * directly, many calls in one write, and does not decode response headers.
 */
export interface UnaryConnection {
  /** Makes a call. @throws if it is answered without a message: it failed. */
  call(headers: Buffer, message: Uint8Array): Promise<Buffer>;
  close(): void;
}

/** RFC 9113, section 6.9.2: bytes that may be sent before the peer opens its window. */
const INITIAL_WINDOW_BYTES = 65_535;
const FRAME_HEAD_BYTES = 9;
const MESSAGE_HEAD_BYTES = 5;
const ACK = 0x1;

/**
 * Encodes the headers of a method's calls with a credential, without HPACK's table, so that they can be
 * reused.
 */
export function callHeaders(method: string, apiKey: string): Buffer {
  return headerBlock({
    ":method": "POST",
    ":scheme": "http",
    ":path": `/onceward.v1.IdempotencyService/${method}`,
    ":authority": "127.0.0.1",
    "content-type": "application/grpc",
    te: "trailers",
    authorization: `Bearer ${apiKey}`,
  });
}

interface OpenCall {
  readonly resolve: (message: Buffer) => void;
  readonly reject: (error: Error) => void;
  readonly parts: Buffer[];
}

/** Opens a connection to a server's gRPC port on loopback. */
export async function openUnaryConnection(port: number): Promise<UnaryConnection> {
  const socket = connect({ host: "127.0.0.1", port, noDelay: true });
  await once(socket, "connect");
  const open = new Map<number, OpenCall>();
  let nextStream = 1;
  let windowBytes = INITIAL_WINDOW_BYTES;
  /** Calls that wait for window, oldest first. */
  let held: { readonly frames: Buffer[]; readonly bytes: number }[] = [];
  let outgoing: Buffer[] = [];

  /** Sends all frames of one turn of the event loop in one write. */
  function write(frames: readonly Buffer[]): void {
    if (outgoing.length === 0) queueMicrotask(flush);
    outgoing.push(...frames);
  }

  function flush(): void {
    const bytes = Buffer.concat(outgoing);
    outgoing = [];
    if (socket.writable) socket.write(bytes);
  }

  function send(frames: Buffer[], bytes: number): void {
    if (held.length > 0 || bytes > windowBytes) {
      held.push({ frames, bytes });
      return;
    }
    windowBytes -= bytes;
    write(frames);
  }

  function widen(bytes: number): void {
    windowBytes += bytes;
    const waiting = held;
    held = [];
    for (const { frames, bytes: needed } of waiting) send(frames, needed);
  }

  function receive(type: number, flags: number, stream: number, payload: Buffer): void {
    const call = open.get(stream);
    if (type === FRAME.data) call?.parts.push(payload);
    if (type === FRAME.windowUpdate && stream === 0) widen(payload.readUInt32BE());
    if (type === FRAME.settings && (flags & ACK) === 0) write([frame(FRAME.settings, ACK, 0)]);
    if (type === FRAME.ping && (flags & ACK) === 0) write([frame(FRAME.ping, ACK, 0, payload)]);
    const carriesEnd = type === FRAME.data || type === FRAME.headers;
    const ended = type === FRAME.resetStream || (carriesEnd && (flags & END_STREAM) !== 0);
    if (call !== undefined && ended) {
      open.delete(stream);
      settle(call);
    }
  }

  const parse = frameParser(receive);
  socket.on("data", parse);
  socket.on("error", () => {});
  socket.on("close", () => {
    for (const { reject } of open.values()) reject(new Error("the connection was closed"));
    open.clear();
  });
  // A window that is larger than what a run receives.
  write([PREFACE, openWindows()]);

  return {
    call(headers, message) {
      return new Promise((resolve, reject) => {
        if (!socket.writable) throw new Error("the connection was closed");
        const stream = nextStream;
        nextStream += 2;
        open.set(stream, { resolve, reject, parts: [] });
        const body = Buffer.alloc(MESSAGE_HEAD_BYTES + message.byteLength);
        body.writeUInt32BE(message.byteLength, 1);
        body.set(message, MESSAGE_HEAD_BYTES);
        const frames = [
          frame(FRAME.headers, END_HEADERS, stream, headers),
          frame(FRAME.data, END_STREAM, stream, body),
        ];
        send(frames, body.byteLength);
      });
    },
    close: () => socket.destroy(),
  };
}

function settle({ parts, resolve, reject }: OpenCall): void {
  const [first] = parts;
  if (first === undefined) reject(new Error("the call failed"));
  else resolve((parts.length === 1 ? first : Buffer.concat(parts)).subarray(MESSAGE_HEAD_BYTES));
}

/** Cuts what arrives into frames: RFC 9113, section 4.1. */
function frameParser(
  onFrame: (type: number, flags: number, stream: number, payload: Buffer) => void,
): (chunk: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0);
  return (chunk) => {
    const bytes = rest.byteLength === 0 ? chunk : Buffer.concat([rest, chunk]);
    let at = 0;
    while (bytes.byteLength - at >= FRAME_HEAD_BYTES) {
      const end = at + FRAME_HEAD_BYTES + bytes.readUIntBE(at, 3);
      if (end > bytes.byteLength) break;
      const stream = bytes.readUInt32BE(at + 5) & 0x7fffffff;
      onFrame(
        bytes.readUInt8(at + 3),
        bytes.readUInt8(at + 4),
        stream,
        bytes.subarray(at + FRAME_HEAD_BYTES, end),
      );
      at = end;
    }
    rest = bytes.subarray(at);
  };
}
