/**
 * Returns a value as a line of JSON in ASCII: between a runner and an adapter, no character of a text may end a line, as
 * U+2028 does for some readers.
 */
export function jsonLine(value: unknown): string {
  const toEscape = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return `${JSON.stringify(value).replaceAll(/[\u007f-\uffff]/g, toEscape)}\n`;
}
