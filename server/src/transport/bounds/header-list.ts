import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { invalidRequest, type Refusal } from "../../domain/refusal.ts";
import { BUDGET_SHARE } from "./memory-limit.ts";

const MIB = 1024 * 1024;

/** Twice an API key's or token's longest header. gRPC's own servers take as much by default. */
export const MAX_HEADER_BYTES = 16 * 1024;
/** Calls have about ten, proxies add as many. */
export const MAX_HEADERS = 128;
/** HTTP/2 counts so much for each header beside its name and value: RFC 9113, section 6.5.2. */
const FIELD_BYTES = 32;

/** What is said of headers beyond the limits. */
export const HEADER_LIMITS = `must be at most ${MAX_HEADER_BYTES} bytes and ${MAX_HEADERS} headers`;

/** Returns the size of headers that are listed as names and values by turns, as Node's `rawHeaders` are. */
export function headerListBytes(raw: readonly string[]): number {
  let bytes = (raw.length / 2) * FIELD_BYTES;
  for (const part of raw) bytes += part.length;
  return bytes;
}

/** Whether a request has more headers than a request needs. */
export function hasTooManyHeaders(raw: readonly string[], bytes = headerListBytes(raw)): boolean {
  return raw.length > 2 * MAX_HEADERS || bytes > MAX_HEADER_BYTES;
}

/** Returns the refusal of a request with too many headers. */
export function tooManyHeaders(): Refusal {
  return invalidRequest("headers", HEADER_LIMITS);
}

/** Header bytes between two checks of the memory. */
const LOOK_BYTES = 4 * MIB;
/** With 1 GiB of memory or more. */
const MAX_DEAD_BYTES = 64 * MIB * BUDGET_SHARE;

/**
 * Returns a function that counts a received header list of HTTP/2, and returns its size; V8 collects when too many are dead. Node keeps
 * the values of HTTP/2's headers outside V8's heap until a full collection, which V8 begins by the size of its heap alone: a peer that
 * sends long headers would take hundreds of megabytes before the first one. Calls with usual headers fill the heap sooner.
 */
export function createHeaderCollector(maxDeadBytes = MAX_DEAD_BYTES, collect = collector()) {
  let unseenBytes = 0;
  /** What is outside the heap, and does not go. */
  let liveBytes = Number.POSITIVE_INFINITY;

  function look(): void {
    unseenBytes = 0;
    const bytes = outsideBytes();
    liveBytes = Math.min(liveBytes, bytes ?? liveBytes);
    if (bytes !== undefined && bytes - liveBytes <= maxDeadBytes) return;
    collect();
    liveBytes = outsideBytes() ?? liveBytes;
  }

  return (raw: readonly string[]): number => {
    const bytes = headerListBytes(raw);
    unseenBytes += bytes;
    if (unseenBytes >= LOOK_BYTES) look();
    return bytes;
  };
}

/**
 * Returns the bytes outside V8's heap, except those of buffers, which V8 counts itself. Undefined: the process has no file left, and Node
 * opens one to read its size.
 */
function outsideBytes(): number | undefined {
  try {
    const { external, arrayBuffers } = process.memoryUsage();
    return external - arrayBuffers;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EMFILE" || code === "ENFILE") return undefined;
    throw error;
  }
}

/** Returns V8's full collection, which Node offers to a program only by this flag. */
function collector(): () => void {
  setFlagsFromString("--expose-gc");
  return runInNewContext("gc");
}
