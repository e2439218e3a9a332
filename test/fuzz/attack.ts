import { setTimeout as pause } from "node:timers/promises";
import type { ConnectionOptions } from "node:tls";
import type { Addresses } from "../../server/src/server.ts";
import type { Random } from "../demo/random.ts";
import { FRAME } from "../helpers/network/http2-frames.ts";
import { openSocket, type RawSocket } from "../helpers/network/raw-socket.ts";
import { anyTranscript } from "./corpus.ts";
import { pick } from "./mutation.ts";
import { anyMutation } from "./mutations.ts";

/** Whom to attack, and a credential that is good there. */
export interface Victim {
  readonly server: Addresses;
  readonly apiKey: string;
  readonly tls: ConnectionOptions | undefined;
}

/** What became of one connection. */
export interface Attack {
  /** The conversation that was meant, and what was made of it. */
  readonly kind: string;
  readonly mutation: string;
  readonly frames: number;
  /** The server ended it, or refused what was sent. */
  readonly isRefused: boolean;
  /** An answer that no request may get, as it came. */
  readonly wrong: string | undefined;
}

/** How what is sent is sent, and how the connection ends. */
const MANNERS = ["at once", "frame by frame", "byte by byte", "unread", "cut off", "half closed"] as const;
const PATIENCE_MS = 500;
/** A server that has said nothing more for this long has nothing more to say. */
const QUIET_MS = 40;
const LOOK_EVERY_MS = 10;
/** Longer than any request may take to arrive. */
const LONG_PATIENCE_MS = 2500;
const MAX_SLOW_BYTES = 40;

/** Sends one mutated conversation on a connection of its own, and looks at what comes back. */
export async function attack(random: Random, { server, apiKey, tls }: Victim): Promise<Attack> {
  const transcript = anyTranscript(random, apiKey);
  const mutation = anyMutation(random, transcript);
  const frames = mutation.mutate(transcript.frames, random);
  const manner = pick(random, MANNERS);
  // Few wait until the server has had enough: they would be all that there is.
  const isPatient = random.below(50) === 0;
  const { kind, port, isHttp2 } = transcript;
  const told = {
    kind: tls === undefined ? kind : `${kind} over TLS`,
    mutation: mutation.name,
    frames: frames.length,
  };

  const options = tls && { ...tls, ...(isHttp2 && { ALPNProtocols: ["h2"] }) };
  const raw = await openSocket(server[port], options).catch(() => undefined);
  // Whether that is because the process is no more, the run finds out by itself.
  if (raw === undefined) return { ...told, isRefused: true, wrong: undefined };
  let isClosed = false;
  const closed = raw.closed.then(() => {
    isClosed = true;
  });
  await Promise.race([sendAll(raw, frames, manner), closed, pause(LONG_PATIENCE_MS)]);
  await Promise.race([closed, isPatient ? pause(LONG_PATIENCE_MS) : untilQuiet(raw)]);
  const isEnded = isClosed;
  // Node has no way to reset a connection of TLS.
  if (manner === "cut off" && tls === undefined) raw.socket.resetAndDestroy();
  else raw.socket.destroy();
  const received = raw.received();
  return {
    ...told,
    isRefused: isEnded || isRefusal(received, isHttp2),
    wrong: wrongAnswer(received, isHttp2),
  };
}

async function sendAll(
  raw: RawSocket,
  frames: readonly Buffer[],
  manner: (typeof MANNERS)[number],
): Promise<void> {
  if (manner === "unread") raw.socket.pause();
  if (manner === "frame by frame") for (const frame of frames) await raw.send(frame);
  else if (manner === "byte by byte") await sendSlowly(raw, Buffer.concat(frames));
  else await raw.send(Buffer.concat(frames));
  if (manner === "half closed") raw.socket.end();
}

/** The first bytes one by one, each in a packet of its own; the rest would take all day. */
async function sendSlowly(raw: RawSocket, bytes: Buffer): Promise<void> {
  raw.socket.setNoDelay();
  const slowly = Math.min(MAX_SLOW_BYTES, bytes.byteLength);
  for (let at = 0; at < slowly; at++) {
    await raw.send(bytes.subarray(at, at + 1));
    await new Promise(setImmediate);
  }
  await raw.send(bytes.subarray(slowly));
}

/** Until an answer has come to its end, or none comes. */
async function untilQuiet({ socket }: RawSocket): Promise<void> {
  const startedAtMs = performance.now();
  let quietSinceMs = Number.POSITIVE_INFINITY;
  let bytesRead = 0;
  for (let now = startedAtMs; now - startedAtMs < PATIENCE_MS && now - quietSinceMs < QUIET_MS; ) {
    await pause(LOOK_EVERY_MS);
    now = performance.now();
    if (socket.bytesRead !== bytesRead) quietSinceMs = now;
    bytesRead = socket.bytesRead;
  }
}

/** An error over HTTP/1.1; over HTTP/2, a stream that was reset or a connection that was asked to leave. */
function isRefusal(received: string, isHttp2: boolean): boolean {
  if (!isHttp2) return /^HTTP\/1\.1 [45]/m.test(received);
  const types = frameTypes(Buffer.from(received, "latin1"));
  return types.includes(FRAME.resetStream) || types.includes(FRAME.goaway);
}

function frameTypes(received: Buffer): readonly number[] {
  const types: number[] = [];
  for (let at = 0; at + 9 <= received.byteLength; at += 9 + received.readUIntBE(at, 3)) {
    types.push(received.readUInt8(at + 3));
  }
  return types;
}

/** Over HTTP/2, what the server has to answer with is compressed; there, its log tells. */
function wrongAnswer(received: string, isHttp2: boolean): string | undefined {
  if (isHttp2) return undefined;
  return /^(HTTP\/1\.1 500 |grpc-status: (2|13)\r).*/m.exec(received)?.[0];
}
