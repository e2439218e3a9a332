import type { ConnectionOptions } from "node:tls";
import { openSocket, type RawSocket } from "./raw-socket.ts";

/** Frame types of RFC 9113, section 6. */
export const FRAME = {
  data: 0,
  headers: 1,
  priority: 2,
  resetStream: 3,
  settings: 4,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;

export const END_STREAM = 0x1;
export const END_HEADERS = 0x4;

export function frame(
  type: number,
  flags: number,
  streamId: number,
  payload: Uint8Array = new Uint8Array(),
): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.byteLength, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(streamId, 5);
  return Buffer.concat([head, payload]);
}

/** Encodes a header block of literal fields without indexing or Huffman coding: RFC 7541, section 6.2.2. */
export function headerBlock(headers: Readonly<Record<string, string>>): Buffer {
  const fields = Object.entries(headers).map(([name, value]) =>
    Buffer.concat([Buffer.from([0]), hpackString(name), hpackString(value)]),
  );
  return Buffer.concat(fields);
}

function hpackString(text: string): Buffer {
  const bytes = Buffer.from(text, "latin1");
  // The length in seven bits; or seven ones, and the rest in groups of seven bits.
  const length = [Math.min(bytes.byteLength, 127)];
  if (bytes.byteLength >= 127) {
    let rest = bytes.byteLength - 127;
    for (; rest >= 128; rest >>= 7) length.push((rest & 127) | 128);
    length.push(rest);
  }
  return Buffer.concat([Buffer.from(length), bytes]);
}

/** Opens an HTTP/2 connection, over TLS if `tls` is given, and sends the preface and empty settings. */
export async function openHttp2(port: number, tls?: ConnectionOptions): Promise<RawSocket> {
  const raw = await openSocket(port, tls && { ...tls, ALPNProtocols: ["h2"] });
  await raw.send(Buffer.concat([PREFACE, frame(FRAME.settings, 0, 0)]));
  return raw;
}

/** The first bytes of every HTTP/2 connection: RFC 9113, section 3.4. */
export const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

/** SETTINGS_INITIAL_WINDOW_SIZE, and the largest and the default window: RFC 9113, sections 6.5.2 and 6.9. */
const INITIAL_WINDOW_SIZE = 4;
const MAX_WINDOW = 2 ** 31 - 1;
const DEFAULT_WINDOW = 65_535;

/** Returns the frames that open all windows, so that the peer may send everything even if it is not read. */
export function openWindows(): Buffer {
  const size = Buffer.alloc(6);
  size.writeUInt16BE(INITIAL_WINDOW_SIZE);
  size.writeUInt32BE(MAX_WINDOW, 2);
  const increment = Buffer.alloc(4);
  increment.writeUInt32BE(MAX_WINDOW - DEFAULT_WINDOW);
  return Buffer.concat([frame(FRAME.settings, 0, 0, size), frame(FRAME.windowUpdate, 0, 0, increment)]);
}
