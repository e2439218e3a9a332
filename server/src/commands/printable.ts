/**
 * Returns a text for a terminal: each character that controls it, or shows text in another order, but line breaks and tabs, is
 * replaced by U+FFFD. For what others wrote: a caller, the database that answers with an error, another program, a foreign page.
 */
export function printable(text: string): string {
  return text.replace(/(?![\n\t])[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu, "\u{fffd}");
}
