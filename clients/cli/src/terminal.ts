/**
 * Characters by which a text controls its terminal, or is shown in another order than it is stored: C0 and C1 controls, DEL,
 * bidirectional controls (https://www.unicode.org/reports/tr9/), and Unicode's line separators.
 */
const CONTROLS = /[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu;
/** {@link CONTROLS} without the line breaks and tabs that this program's own texts have. */
const CONTROLS_IN_LINES = /(?![\n\t])[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu;

/** Returns a text on one line, with each control character replaced by U+FFFD: a server or a caller wrote it. */
export function visible(text: string): string {
  return text.replace(CONTROLS, "\u{fffd}");
}

/** Returns whether a text has control characters. */
export function hasControls(text: string): boolean {
  return text.search(CONTROLS) !== -1;
}

/** Returns a value as JSON in which each control character of a text is escaped, so that programs read it unchanged. */
export function printableJson(value: unknown, indent?: number): string {
  // JSON.stringify escapes C0 only, apart from the line breaks of the indentation.
  return JSON.stringify(value, undefined, indent).replace(CONTROLS_IN_LINES, escaped);
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

/** Returns a text of several lines, with each control character but line breaks and tabs replaced by U+FFFD. */
export function printable(text: string): string {
  return text.replace(CONTROLS_IN_LINES, "\u{fffd}");
}
