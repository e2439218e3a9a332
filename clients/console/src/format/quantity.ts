export { formatSize } from "@onceward/words/bytes";
export { formatCount, formatEstimate, formatNoun, formatRate, formatShare } from "@onceward/words/words";

/** Returns a phrase with a capital first letter. */
export function asTitle(phrase: string): string {
  return `${phrase.charAt(0).toUpperCase()}${phrase.slice(1)}`;
}

/** Returns a title with a small first letter, for use within a sentence. */
export function inSentence(title: string): string {
  return `${title.charAt(0).toLowerCase()}${title.slice(1)}`;
}
