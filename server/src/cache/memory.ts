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

/** More than an entry's objects, its map slot and the frames of its texts and bytes take on 64-bit V8. */
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
      const entryBytes = ENTRY_OVERHEAD_BYTES + contentBytes(name, record);
      if (entryBytes > maxBytes) return;
      entries.set(name, {
        record: withOwnBytes(record),
        bytes: entryBytes,
        goneAtMs: performance.now() + lifetimeMs,
      });
      bytes += entryBytes;
      for (const oldest of entries.keys()) {
        if (bytes <= maxBytes) break;
        remove(oldest);
      }
    },
    bytes: () => bytes,
  };
}

/** A character may take two bytes. */
function contentBytes(name: string, record: LiveRecord): number {
  const { id, claimId, owner, phase } = record;
  let characters = name.length + id.namespace.length + id.key.length + claimId.length + owner.length;
  if (phase.kind !== "completed" || phase.result === undefined) return 2 * characters;
  const { payload, contentType, metadata } = phase.result;
  characters += contentType.length;
  for (const key in metadata) characters += key.length + (metadata[key]?.length ?? 0);
  return payload.byteLength + 2 * characters;
}

/**
 * What comes from a socket is a view of all that was read with it, and small buffers share a page: bytes that are kept
 * must not keep those alive.
 */
function withOwnBytes(record: LiveRecord): LiveRecord {
  const { phase } = record;
  const fingerprint = record.fingerprint && new Uint8Array(record.fingerprint);
  if (phase.kind !== "completed" || phase.result === undefined) return { ...record, fingerprint };
  const result = { ...phase.result, payload: new Uint8Array(phase.result.payload) };
  return {
    ...record,
    fingerprint,
    phase: { ...phase, resultDigest: new Uint8Array(phase.resultDigest), result },
  };
}
