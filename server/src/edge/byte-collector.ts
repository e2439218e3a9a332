/**
 * Puts bytes together that come piece by piece. They are copied: a piece keeps all alive that was read from the socket with
 * it, and pieces of one byte each would take a hundred times their size.
 */
export interface ByteCollector {
  readonly byteLength: number;
  push(piece: Uint8Array): void;
  /** Returns a view of what came so far; what is pushed later does not change it. */
  view(): Buffer;
}

const EMPTY = Buffer.alloc(0);

/**
 * @param begun What came before the first piece; it is neither copied nor changed.
 * @see ByteCollector
 */
export function createByteCollector(begun: Buffer = EMPTY): ByteCollector {
  let space = begun;
  let byteLength = begun.byteLength;
  return {
    get byteLength() {
      return byteLength;
    },
    push(piece) {
      const needed = byteLength + piece.byteLength;
      if (needed > space.byteLength) {
        // Exactly for the first piece, which mostly is all; then by doubling, so that a byte is copied once or twice.
        const grown = Buffer.allocUnsafeSlow(
          byteLength === 0 ? needed : Math.max(needed, 2 * space.byteLength),
        );
        space.copy(grown, 0, 0, byteLength);
        space = grown;
      }
      space.set(piece, byteLength);
      byteLength = needed;
    },
    view: () => space.subarray(0, byteLength),
  };
}
