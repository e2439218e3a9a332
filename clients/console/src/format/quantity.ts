import { parseBytes } from "@onceward/words/bytes";

export { formatCount, formatEstimate, formatNoun, formatShare, formatSize } from "@onceward/words/words";

/** Returns the bytes of a text such as "65536", "64KiB" or "64 kib"; undefined for any other text. */
export function parseSize(text: string): number | undefined {
  return parseBytes(
    text
      .trim()
      .replace(/\s+/, "")
      .replace(/(\d)b$/i, "$1"),
  );
}

/** Returns a title with a small first letter, for use within a sentence. */
export function inSentence(title: string): string {
  return `${title.charAt(0).toLowerCase()}${title.slice(1)}`;
}
