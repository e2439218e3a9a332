import { createEntries, entryWords } from "./memory-entries.ts";
import { createNameHash, createNameWriter, type Name, type NameHash, WORD_BYTES } from "./memory-name.ts";

/**
 * Bytes by name in this process, bounded. What was written longest ago goes first, but for what was asked for since: that is
 * spared, once for each time that it would have gone, where it leaves room for new entries.
 */
export interface MemoryCache {
  /** A buffer of the caller's own. */
  get(name: string): Buffer | undefined;
  /** Keeps the bytes for at most `lifetimeMs`. What takes more than 64 KiB with its name is not kept. */
  set(name: string, bytes: Buffer, lifetimeMs: number): void;
  /** Drops all that it holds. */
  clear(): void;
  /** The memory that it has taken, with everything that it needs to find its entries. */
  bytes(): number;
}

/** Room is made by sections: a tenth of a millisecond for some 600 entries. */
export const SECTION_BYTES = 256 * 1024;
const SECTION_WORDS = SECTION_BYTES / WORD_BYTES;
/** Of a section: a quarter of each is for new entries, also where everything is asked for. */
const MAX_SPARED_WORDS = (SECTION_WORDS * 3) / 4;
const MAX_ENTRY_WORDS = SECTION_WORDS - MAX_SPARED_WORDS - 1;
/** Nearly a chain for each entry, in less than a hundredth of the memory. */
const BYTES_PER_CHAIN = 512;
/** What is behind is lost: whoever finds names that fall together makes their own looks miss, and nobody's slow. */
const MAX_CHAIN = 32;
/** In a section: so no entry is `NONE`. */
const FIRST_ENTRY = 1;
const NONE = 0;

/**
 * Sections are filled one after the other and round again. An entry is found along a chain of those whose names fall together,
 * the newest first.
 *
 * @see MemoryCache
 */
export function createMemoryCache(maxBytes: number, hash: NameHash = createNameHash()): MemoryCache {
  const chains = new Uint32Array(2 ** Math.floor(Math.log2(Math.max(1, maxBytes / BYTES_PER_CHAIN))));
  let sections = Math.max(0, Math.floor((maxBytes - chains.byteLength) / SECTION_BYTES));
  /** Room for none until there is one: a server that keeps nothing takes nothing. */
  let entries = createEntries(0);
  const writeName = createNameWriter(hash);
  /** Where each section's last entry ends. */
  const ends: number[] = [];
  let section = 0;
  let end = FIRST_ENTRY;

  const chainOf = (entryHash: number) => entryHash & (chains.length - 1);
  const firstOf = (entryHash: number) => chains[chainOf(entryHash)] ?? NONE;

  function find(name: Name): number {
    let entry = firstOf(name.hash);
    for (let looks = 1; entry !== NONE && !entries.isNamed(entry, name); looks++) {
      if (looks === MAX_CHAIN) entries.setNext(entry, NONE);
      entry = entries.next(entry);
    }
    return entry;
  }

  function link(entry: number): void {
    const entryHash = entries.hash(entry);
    entries.setNext(entry, firstOf(entryHash));
    chains[chainOf(entryHash)] = entry;
  }

  /** False: it is in no chain, replaced or lost. */
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

  /** Ends the section and goes on with a new one, or the oldest: what is spared there moves to its front. */
  function turn(): void {
    ends[section] = end;
    section = (section + 1) % sections;
    const start = section * SECTION_WORDS + FIRST_ENTRY;
    const oldEnd = ends[section] ?? start;
    end = start;
    for (let entry = start; entry < oldEnd; ) {
      const words = entries.words(entry);
      const spared = unlink(entry) && entries.isMarked(entry);
      if (spared && end + words <= start + MAX_SPARED_WORDS) {
        entries.move(entry, end);
        entries.mark(end, false);
        link(end);
        end += words;
      }
      entry += words;
    }
  }

  /** Where the system has no such memory to give, nothing is kept: no call fails for want of a copy. */
  function open(): void {
    try {
      entries = createEntries(sections * SECTION_BYTES);
    } catch {
      sections = 0;
    }
  }

  /** The place of a new entry, which is in no chain yet. */
  function take(words: number): number {
    if (end + words > (section + 1) * SECTION_WORDS) turn();
    end += words;
    return end - words;
  }

  return {
    get(text) {
      const name = writeName(text);
      const entry = name === undefined ? NONE : find(name);
      if (entry === NONE || entries.endsAtMs(entry) <= performance.now()) return undefined;
      entries.mark(entry, true);
      return entries.content(entry);
    },

    set(text, bytes, lifetimeMs) {
      if (entries.maxBytes === 0) open();
      const name = writeName(text);
      if (name === undefined || sections === 0) return;
      const replaced = find(name);
      if (replaced !== NONE) unlink(replaced);
      const words = entryWords(name.length, bytes.byteLength);
      if (words > MAX_ENTRY_WORDS) return;
      const entry = take(words);
      entries.write(entry, name, bytes, performance.now() + lifetimeMs);
      link(entry);
    },

    clear() {
      chains.fill(NONE);
      ends.length = 0;
      section = 0;
      end = FIRST_ENTRY;
    },

    bytes() {
      if (entries.maxBytes === 0) return 0;
      return chains.byteLength + Math.min(ends.length + 1, sections) * SECTION_BYTES;
    },
  };
}
