/** Names and entries are read and written in words. */
export const WORD_BYTES = 4;

/** A name as UTF-8 and its hash. Valid until the next name is written. */
export interface Name {
  /** The name, padded with zeros to a multiple of four bytes, because it is read in words. */
  readonly view: DataView;
  readonly length: number;
  readonly hash: number;
}

/**
 * The layout of entries, in one buffer outside V8's heap:
 *
 * | bytes    |                                                            |
 * | -------- | ---------------------------------------------------------- |
 * | 4, 4     | hash of the name; the next entry of its chain              |
 * | 8        | its expiry, in `performance.now()` ms: a double            |
 * | 4, 2, 2  | lengths of content and name; 1 if it is marked             |
 * | the rest | name, content, each filled up to a multiple of four bytes  |
 *
 * An entry's offset counts words of four bytes, so that 32 bits address 16 GiB.
 */
const NEXT_AT = 4;
const ENDS_AT = 8;
const CONTENT_LENGTH_AT = 16;
const NAME_LENGTH_AT = 20;
const MARK_AT = 22;
const NAME_AT = 24;

/** Reserves a buffer for entries. The system allocates its pages when they are first written. */
export function createEntries(maxBytes: number) {
  // Not shared with any thread. V8 counts an unshared buffer towards garbage collection, and starts one when
  // it is created.
  const bytes = Buffer.from(new SharedArrayBuffer(maxBytes));
  const view = new DataView(bytes.buffer);
  const at = (entry: number, field: number) => entry * WORD_BYTES + field;
  const nameLength = (entry: number) => view.getUint16(at(entry, NAME_LENGTH_AT), true);
  const contentLength = (entry: number) => view.getUint32(at(entry, CONTENT_LENGTH_AT), true);
  const contentAt = (entry: number) => at(entry, NAME_AT) + WORD_BYTES * words(nameLength(entry));

  return {
    maxBytes,

    /** Writes an entry, over the previous contents. */
    write(entry: number, name: Name, content: Buffer, endsAtMs: number): void {
      view.setUint32(at(entry, 0), name.hash, true);
      view.setFloat64(at(entry, ENDS_AT), endsAtMs, true);
      view.setUint32(at(entry, CONTENT_LENGTH_AT), content.byteLength, true);
      view.setUint16(at(entry, NAME_LENGTH_AT), name.length, true);
      view.setUint16(at(entry, MARK_AT), 0, true);
      for (let i = 0; i < name.length; i += WORD_BYTES)
        view.setUint32(at(entry, NAME_AT + i), name.view.getUint32(i, true), true);
      content.copy(bytes, contentAt(entry));
    },

    isNamed(entry: number, name: Name): boolean {
      if (view.getUint32(at(entry, 0), true) !== name.hash || nameLength(entry) !== name.length) return false;
      for (let i = 0; i < name.length; i += WORD_BYTES)
        if (view.getUint32(at(entry, NAME_AT + i), true) !== name.view.getUint32(i, true)) return false;
      return true;
    },

    /** Returns a copy of the entry's content. */
    content(entry: number): Buffer {
      const content = Buffer.allocUnsafe(contentLength(entry));
      bytes.copy(content, 0, contentAt(entry), contentAt(entry) + content.byteLength);
      return content;
    },

    move(entry: number, to: number): void {
      bytes.copyWithin(to * WORD_BYTES, entry * WORD_BYTES, (entry + this.words(entry)) * WORD_BYTES);
    },

    /** Returns the entry's size in words. */
    words: (entry: number) => entryWords(nameLength(entry), contentLength(entry)),
    hash: (entry: number) => view.getUint32(at(entry, 0), true),
    endsAtMs: (entry: number) => view.getFloat64(at(entry, ENDS_AT), true),
    next: (entry: number) => view.getUint32(at(entry, NEXT_AT), true),
    setNext: (entry: number, next: number) => view.setUint32(at(entry, NEXT_AT), next, true),
    isMarked: (entry: number) => view.getUint16(at(entry, MARK_AT), true) === 1,
    mark: (entry: number, marked: boolean) => view.setUint16(at(entry, MARK_AT), marked ? 1 : 0, true),
  };
}

/** Returns the size in words of an entry whose name and content have these sizes in bytes. */
export function entryWords(nameLength: number, contentLength: number): number {
  return words(NAME_AT) + words(nameLength) + words(contentLength);
}

function words(bytes: number): number {
  return (bytes + WORD_BYTES - 1) >>> 2;
}
