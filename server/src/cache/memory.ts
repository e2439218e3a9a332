/** Bytes by name in this process, bounded; what was kept longest ago goes first, unless it was used since. */
export interface MemoryCache {
  /** A buffer of the caller's own. */
  get(name: string): Buffer | undefined;
  /** Keeps the bytes for at most `lifetimeMs`. What alone is larger than the cache is not kept. */
  set(name: string, bytes: Uint8Array, lifetimeMs: number): void;
  /** What it holds, as counted against its bound. */
  bytes(): number;
}

/** When an entry is gone, in `performance.now()` milliseconds: a double before its bytes. */
const GONE_AT_BYTES = 8;
/**
 * What V8 takes for an entry besides its characters: the frames of two strings and a slot of the map, of which up to half
 * are free. Measured, an entry of 272 bytes under a name of 37 takes 350 to 460, and counts 429.
 */
const ENTRY_OVERHEAD_BYTES = 112;
/** How many are spared when room is made for one: however many were used, that stays cheap. */
const MAX_SPARED = 16;
/** One such character, and V8 takes two bytes for each character of the text. */
const WIDE_CHARACTER = /[\u0100-\uffff]/;

/**
 * Each entry's bytes are a string of as many characters: V8 keeps those in one piece each, on its own heap. A buffer of
 * its own would take some 200 bytes more, and one of a shared page would keep all of that page alive.
 *
 * @see MemoryCache
 */
export function createMemoryCache(maxBytes: number): MemoryCache {
  // In the order in which they came, or were spared.
  const entries = new Map<string, string>();
  /**
   * What was used since. It is spared once, at the end of the line. Moving it there whenever it is used would cost a hot
   * entry ever more: a Map keeps what was deleted in its way until it grows.
   */
  const used = new Set<string>();
  let bytes = 0;

  function remove(name: string, entry: string): void {
    entries.delete(name);
    used.delete(name);
    bytes -= entryBytes(name, entry.length);
  }

  function makeRoom(neededBytes: number): void {
    let spared = 0;
    for (const [name, entry] of entries) {
      if (bytes + neededBytes <= maxBytes) break;
      if (spared < MAX_SPARED && used.delete(name)) {
        spared++;
        entries.delete(name);
        entries.set(name, entry);
      } else remove(name, entry);
    }
  }

  return {
    get(name) {
      const entry = entries.get(name);
      if (entry === undefined) return undefined;
      const found = Buffer.from(entry, "latin1");
      if (performance.now() >= found.readDoubleLE()) {
        remove(name, entry);
        return undefined;
      }
      used.add(name);
      return found.subarray(GONE_AT_BYTES);
    },
    set(name, content, lifetimeMs) {
      const replaced = entries.get(name);
      if (replaced !== undefined) remove(name, replaced);
      const newBytes = entryBytes(name, GONE_AT_BYTES + content.byteLength);
      if (newBytes > maxBytes) return;
      makeRoom(newBytes);
      const entry = Buffer.allocUnsafe(GONE_AT_BYTES + content.byteLength);
      entry.writeDoubleLE(performance.now() + lifetimeMs);
      entry.set(content, GONE_AT_BYTES);
      entries.set(name, entry.toString("latin1"));
      bytes += newBytes;
    },
    bytes: () => bytes,
  };
}

function entryBytes(name: string, contentLength: number): number {
  const nameBytes = WIDE_CHARACTER.test(name) ? 2 * name.length : name.length;
  return ENTRY_OVERHEAD_BYTES + nameBytes + contentLength;
}
