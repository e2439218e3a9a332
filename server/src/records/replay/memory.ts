import { randomBytes } from "node:crypto";
import { createEntries, entryWords, type Name, WORD_BYTES } from "./memory-entries.ts";

/**
 * A bounded map from names to bytes in this process' memory. Evicts the oldest entries first. An entry that
 * was read since its last turn survives its eviction once, as far as room remains for new entries.
 */
export type MemoryCache = ReturnType<typeof createMemoryCache>;

/** Entries are evicted by section: 0.1 ms for some 600 entries. */
export const SECTION_BYTES = 256 * 1024;
const SECTION_WORDS = SECTION_BYTES / WORD_BYTES;
/** Words of a section that surviving entries may take: a quarter is always free for new entries. */
const MAX_SURVIVING_WORDS = (SECTION_WORDS * 3) / 4;
const MAX_ENTRY_WORDS = SECTION_WORDS - MAX_SURVIVING_WORDS - 1;
/** Gives nearly every entry its own chain, in less than a hundredth of the memory. */
const BYTES_PER_CHAIN = 512;
/**
 * Later entries of a chain are lost: a stranger with colliding names causes misses of those names, but no
 * slow lookups.
 */
const MAX_CHAIN = 32;
/** Offset of a section's first entry, so that no entry has the offset `NONE`. */
const FIRST_ENTRY = 1;
const NONE = 0;

/**
 * Creates an empty cache. Sections are filled in turn, round and round. A hash table of chains finds an
 * entry; the newest entry of a chain comes first. One closure of 110 lines, because all its functions share
 * the index and the position of the next entry.
 */
// biome-ignore lint/complexity/noExcessiveLinesPerFunction: its functions share the index and the position.
export function createMemoryCache(maxBytes: number, hash: NameHash = createNameHash()) {
  const chains = new Uint32Array(2 ** Math.floor(Math.log2(Math.max(1, maxBytes / BYTES_PER_CHAIN))));
  let sections = Math.max(0, Math.floor((maxBytes - chains.byteLength) / SECTION_BYTES));
  /** Empty until the first entry, so that an unused cache takes no memory. */
  let entries = createEntries(0);
  const writeName = createNameWriter(hash);
  /** End of each section's last entry, in words. */
  const ends: number[] = [];
  let section = 0;
  let end = FIRST_ENTRY;

  const chainOf = (entryHash: number) => entryHash & (chains.length - 1);
  const firstOf = (entryHash: number) => chains[chainOf(entryHash)] ?? NONE;

  function find(name: Name): number {
    let entry = firstOf(name.hash);
    for (let length = 1; entry !== NONE && !entries.isNamed(entry, name); length++) {
      if (length === MAX_CHAIN) entries.setNext(entry, NONE);
      entry = entries.next(entry);
    }
    return entry;
  }

  function link(entry: number): void {
    const entryHash = entries.hash(entry);
    entries.setNext(entry, firstOf(entryHash));
    chains[chainOf(entryHash)] = entry;
  }

  /** Removes an entry from its chain; returns false if it is in none, because it was replaced or lost. */
  function unlink(entry: number): boolean {
    const entryHash = entries.hash(entry);
    let before = firstOf(entryHash);
    if (before === entry) {
      chains[chainOf(entryHash)] = entries.next(entry);
      return true;
    }
    while (before !== NONE && entries.next(before) !== entry) before = entries.next(before);
    if (before !== NONE) entries.setNext(before, entries.next(entry));
    return before !== NONE;
  }

  /**
   * Starts the next section. If it is the oldest, evicts its entries and moves the surviving ones to its
   * front.
   */
  function startNextSection(): void {
    ends[section] = end;
    section = (section + 1) % sections;
    const start = section * SECTION_WORDS + FIRST_ENTRY;
    const oldEnd = ends[section] ?? start;
    end = start;
    for (let entry = start; entry < oldEnd; ) {
      const words = entries.words(entry);
      const survives = unlink(entry) && entries.isMarked(entry);
      if (survives && end + words <= start + MAX_SURVIVING_WORDS) {
        entries.move(entry, end);
        entries.mark(end, false);
        link(end);
        end += words;
      }
      entry += words;
    }
  }

  /** Reserves the memory. If the system refuses it, the cache stays empty: no call fails. */
  function open(): void {
    try {
      entries = createEntries(sections * SECTION_BYTES);
    } catch {
      sections = 0;
    }
  }

  /** Returns the offset of a new entry, which is in no chain yet. */
  function allocate(words: number): number {
    if (end + words > (section + 1) * SECTION_WORDS) startNextSection();
    end += words;
    return end - words;
  }

  return {
    /** Returns a copy of the bytes; undefined if there are none. */
    get(text: string): Buffer | undefined {
      const name = writeName(text);
      const entry = name === undefined ? NONE : find(name);
      if (entry === NONE || entries.endsAtMs(entry) <= performance.now()) return undefined;
      entries.mark(entry, true);
      return entries.content(entry);
    },

    /** Removes the bytes of a name, if there are any. */
    delete(text: string): void {
      const name = writeName(text);
      const entry = name === undefined ? NONE : find(name);
      if (entry !== NONE) unlink(entry);
    },

    /** Stores the bytes for at most `lifetimeMs`. Ignores entries of more than 64 KiB, name included. */
    set(text: string, bytes: Buffer, lifetimeMs: number): void {
      if (entries.maxBytes === 0) open();
      const name = writeName(text);
      if (name === undefined || sections === 0) return;
      const replaced = find(name);
      if (replaced !== NONE) unlink(replaced);
      const words = entryWords(name.length, bytes.byteLength);
      if (words > MAX_ENTRY_WORDS) return;
      const entry = allocate(words);
      entries.write(entry, name, bytes, performance.now() + lifetimeMs);
      link(entry);
    },

    /** Removes all entries. */
    clear(): void {
      chains.fill(NONE);
      ends.length = 0;
      section = 0;
      end = FIRST_ENTRY;
    },

    /** Returns the memory in use, with the index. */
    bytes(): number {
      if (entries.maxBytes === 0) return 0;
      return chains.byteLength + Math.min(ends.length + 1, sections) * SECTION_BYTES;
    },
  };
}

/** Hashes a name to 32 bits, evenly distributed. */
export type NameHash = (view: DataView, length: number) => number;

/** A completion's name has at most 345: a scope of 22, a namespace of 63, a key of 255, and separators. */
const MAX_NAME_BYTES = 1056;

/**
 * Returns a function that writes names to one buffer. It returns undefined for a name that is too long, or
 * that contains half of a surrogate pair, because another name has the same bytes.
 */
export function createNameWriter(hash: NameHash): (text: string) => Name | undefined {
  const bytes = Buffer.from(new ArrayBuffer(MAX_NAME_BYTES + WORD_BYTES));
  const name = { view: new DataView(bytes.buffer), length: 0, hash: 0 };
  return (text) => {
    if (text.length > MAX_NAME_BYTES / 3 || !text.isWellFormed()) return undefined;
    name.length = bytes.write(text);
    name.view.setUint32(name.length, 0);
    name.hash = hash(name.view, name.length);
    return name;
  };
}

/** Returns MurmurHash3 with a random seed, so that a stranger cannot choose names with the same hash. */
export function createNameHash(): NameHash {
  const seed = randomBytes(WORD_BYTES).readInt32LE();
  return (view, length) => {
    let hash = seed ^ length;
    for (let i = 0; i < length; i += WORD_BYTES) {
      const word = Math.imul(view.getInt32(i, true), 0xcc9e2d51);
      hash ^= Math.imul((word << 15) | (word >>> 17), 0x1b873593);
      hash = (Math.imul((hash << 13) | (hash >>> 19), 5) + 0xe6546b64) | 0;
    }
    hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
    hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
    return (hash ^ (hash >>> 16)) >>> 0;
  };
}
