export { parseSize } from "@onceward/decode/field-facts.ts";
export { formatCount, formatEstimate, formatNoun, formatShare, formatSize } from "@onceward/decode/words.ts";

/** Returns a phrase with a capital first letter. */
export function asTitle(phrase: string): string {
  return `${phrase.charAt(0).toUpperCase()}${phrase.slice(1)}`;
}

/** Returns a title with a small first letter, for use within a sentence. */
export function inSentence(title: string): string {
  return `${title.charAt(0).toLowerCase()}${title.slice(1)}`;
}
