import { setTimeout as pause } from "node:timers/promises";
import type { ConnectionOptions } from "node:tls";
import type { Addresses } from "../../../server/src/replica/server.ts";
import { FRAME } from "../../support/network/http2-frames.ts";
import { openSocket, type RawSocket } from "../../support/network/raw-socket.ts";
import type { Random } from "../../support/random.ts";
import { anyTranscript } from "./corpus.ts";
import { pick } from "./mutation.ts";
import { anyMutation } from "./mutations.ts";

/** The server to attack, and a valid credential. */
export interface Victim {
  readonly server: Addresses;
  readonly apiKey: string;
  readonly tls: ConnectionOptions | undefined;
}

/** The result of one connection. */
export interface Attack {
  /** The conversation and its mutation. */
  readonly kind: string;
  readonly mutation: string;
  readonly frames: number;
  /** Whether the server ended the connection or refused a request. */
  readonly isRefused: boolean;
  /** An answer that no request may get. */
  readonly wrong: string | undefined;
}

/** How the bytes are sent, and how the connection ends. */
const MANNERS = ["at once", "frame by frame", "byte by byte", "unread", "cut off", "half closed"] as const;
const PATIENCE_MS = 500;
/** An answer is complete when nothing has arrived for this long. */
const QUIET_MS = 40;
const LOOK_EVERY_MS = 10;
/** Longer than any request may take to arrive. */
const LONG_PATIENCE_MS = 2500;
const MAX_SLOW_BYTES = 40;

/** Sends a mutated conversation on a new connection, and checks the answer. */
export async function attack(random: Random, { server, apiKey, tls }: Victim): Promise<Attack> {
  const transcript = anyTranscript(random, apiKey);
  const mutation = anyMutation(random, transcript);
  const frames = mutation.mutate(transcript.frames, random);
  const manner = pick(random, MANNERS);
  // Only few connections wait until the server ends them; otherwise all would.
  const isPatient = random.below(50) === 0;
  const { kind, port, isHttp2 } = transcript;
  const told = {
    kind: tls === undefined ? kind : `${kind} over TLS`,
    mutation: mutation.name,
    frames: frames.length,
  };

  const options = tls && { ...tls, ...(isHttp2 && { ALPNProtocols: ["h2"] }) };
  const raw = await openSocket(server[port], options).catch(() => undefined);
  // The run itself finds out whether the process has ended.
  if (raw === undefined) return { ...told, isRefused: true, wrong: undefined };
  let isClosed = false;
  const closed = raw.closed.then(() => {
    isClosed = true;
  });
  await Promise.race([sendAll(raw, frames, manner), closed, pause(LONG_PATIENCE_MS)]);
  await Promise.race([closed, isPatient ? pause(LONG_PATIENCE_MS) : untilQuiet(raw)]);
  const isEnded = isClosed;
  // Node can't reset a TLS connection, nor one of a Unix socket.
  if (manner === "cut off" && tls === undefined && raw.socket.remotePort !== undefined)
    raw.socket.resetAndDestroy();
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

/**
 * Sends the first bytes one by one, each in a separate packet, and the rest at once, because it would take
 * too long.
 */
async function sendSlowly(raw: RawSocket, bytes: Buffer): Promise<void> {
  raw.socket.setNoDelay();
  const slowly = Math.min(MAX_SLOW_BYTES, bytes.byteLength);
  for (let at = 0; at < slowly; at++) {
    await raw.send(bytes.subarray(at, at + 1));
    await new Promise(setImmediate);
  }
  await raw.send(bytes.subarray(slowly));
}

/** Resolves when an answer is complete, or none comes. */
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

/** Whether the answer is an error of HTTP/1.1, or resets a stream or ends the connection of HTTP/2. */
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

/** Finds INTERNAL errors over HTTP/1.1. Headers of HTTP/2 are compressed; there, the log shows them. */
function wrongAnswer(received: string, isHttp2: boolean): string | undefined {
  if (isHttp2) return undefined;
  return /^(HTTP\/1\.1 500 |grpc-status: (2|13)\r).*/m.exec(received)?.[0];
}
