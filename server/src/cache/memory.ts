import { LRUCache } from "lru-cache";

/** Bytes by name in this process, bounded; what was used longest ago goes first. */
export interface MemoryCache {
  /** A buffer of the caller's own. */
  get(name: string): Buffer | undefined;
  /** Keeps the bytes for at most `lifetimeMs`, more than 0. What alone is larger than the cache is not kept. */
  set(name: string, bytes: Buffer, lifetimeMs: number): void;
  /** What it holds, as counted against its bound. */
  bytes(): number;
}

/**
 * What V8 takes for an entry besides its characters: the frames of two strings, a slot of the map, of which up to half
 * are free, and the library's own. Measured, an entry of 264 bytes under a name of 37 takes 420 to 560, and counts 461.
 */
const ENTRY_OVERHEAD_BYTES = 160;
/** One such character, and V8 takes two bytes for each character of the text. */
const WIDE_CHARACTER = /[\u0100-\uffff]/;

/**
 * Each entry's bytes are a string of as many characters: V8 keeps those in one piece each, on its own heap. A buffer of
 * its own would take some 200 bytes more, and one of a shared page would keep all of that page alive.
 *
 * @see MemoryCache
 */
export function createMemoryCache(maxBytes: number): MemoryCache {
  // Without room for one byte nothing is kept: no entry is that small.
  const entries = new LRUCache<string, string>({
    maxSize: Math.max(1, maxBytes),
    perf: performance,
    ttlResolution: 0,
  });
  return {
    get(name) {
      const entry = entries.get(name);
      return entry === undefined ? undefined : Buffer.from(entry, "latin1");
    },
    set(name, bytes, lifetimeMs) {
      const size = entryBytes(name, bytes.byteLength);
      entries.set(name, bytes.toString("latin1"), { size, ttl: lifetimeMs });
    },
    bytes: () => entries.calculatedSize,
  };
}

function entryBytes(name: string, contentLength: number): number {
  const nameBytes = WIDE_CHARACTER.test(name) ? 2 * name.length : name.length;
  return ENTRY_OVERHEAD_BYTES + nameBytes + contentLength;
}
