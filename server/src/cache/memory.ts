import type { LiveRecord } from "../domain/record.ts";

/** Completed records in this process, bounded by bytes; what was used longest ago goes first. */
export interface MemoryCache {
  get(name: string): LiveRecord | undefined;
  /** Keeps a record for at most `lifetimeMs`. One that alone is larger than the cache is not kept. */
  set(name: string, record: LiveRecord, lifetimeMs: number): void;
  /** What it holds, as counted against its bound. */
  bytes(): number;
}

interface Entry {
  readonly record: LiveRecord;
  readonly bytes: number;
  /** In `performance.now()` milliseconds. */
  readonly goneAtMs: number;
}

/** More than an entry's objects, its map slot, its name and its texts take on 64-bit V8. */
const ENTRY_OVERHEAD_BYTES = 1536;

/** @see MemoryCache */
export function createMemoryCache(maxBytes: number): MemoryCache {
  // A Map keeps the order of insertion: an entry that is used moves to the end.
  const entries = new Map<string, Entry>();
  let bytes = 0;

  function remove(name: string): void {
    const entry = entries.get(name);
    if (entry === undefined) return;
    entries.delete(name);
    bytes -= entry.bytes;
  }

  return {
    get(name) {
      const entry = entries.get(name);
      if (entry === undefined) return undefined;
      if (performance.now() >= entry.goneAtMs) {
        remove(name);
        return undefined;
      }
      entries.delete(name);
      entries.set(name, entry);
      return entry.record;
    },
    set(name, record, lifetimeMs) {
      remove(name);
      const entryBytes = ENTRY_OVERHEAD_BYTES + payloadBytes(record);
      if (entryBytes > maxBytes) return;
      entries.set(name, { record, bytes: entryBytes, goneAtMs: performance.now() + lifetimeMs });
      bytes += entryBytes;
      for (const oldest of entries.keys()) {
        if (bytes <= maxBytes) break;
        remove(oldest);
      }
    },
    bytes: () => bytes,
  };
}

function payloadBytes({ phase }: LiveRecord): number {
  if (phase.kind !== "completed" || phase.result === undefined) return 0;
  let bytes = phase.result.payload.byteLength;
  for (const name in phase.result.metadata)
    bytes += 2 * (name.length + (phase.result.metadata[name]?.length ?? 0));
  return bytes;
}
