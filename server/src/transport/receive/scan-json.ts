import { malformed } from "../errors.ts";

/** Levels of nested objects and lists. Requests have at most seven. */
const MAX_DEPTH = 32;
/**
 * Characters of a number, or of a string of digits: 64-bit numbers may be strings, and parsing one takes the
 * square of its length. Longer than a metadata value, which may consist of digits.
 */
const MAX_DIGITS = 4096;

const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/**
 * Checks how much work it would be to parse JSON, before it is parsed. The parser checks the syntax.
 *
 * @throws Refusal INVALID_REQUEST for more than `maxValues` members and elements, more than 32 levels, or a
 *   number of more than 4,096 digits.
 */
export function scanJson(json: Uint8Array, maxValues: number): void {
  let depth = 0;
  let values = 0;
  for (let at = 0; at < json.length; at++) {
    switch (json[at]) {
      case QUOTE: {
        const end = endOfString(json, at + 1);
        if (end - at > MAX_DIGITS) refuseDigits(json, at + 1, end);
        at = end;
        break;
      }
      case OPEN_LIST:
      case OPEN_OBJECT:
        if (++depth > MAX_DEPTH) throw malformed(`has more than ${MAX_DEPTH} levels`);
        values++;
        break;
      case CLOSE_LIST:
      case CLOSE_OBJECT:
        depth--;
        break;
      case COMMA:
        values++;
        break;
    }
    if (values > maxValues) throw malformed(`has more than ${maxValues} values`);
  }
}

/** Returns the index of the quote that ends a string, or the end of the JSON. */
function endOfString(json: Uint8Array, start: number): number {
  let at = start;
  for (; at < json.length; at++) {
    const byte = json[at];
    if (byte === BACKSLASH) at++;
    else if (byte === QUOTE) break;
  }
  return at;
}

const OF_NUMBERS: ReadonlySet<number | undefined> = new Set(Buffer.from("0123456789+-.eE \t\r\n"));

function refuseDigits(json: Uint8Array, start: number, end: number): void {
  for (let at = start; at < end; at++) if (!OF_NUMBERS.has(json[at])) return;
  throw malformed(`has a number of more than ${MAX_DIGITS} digits`);
}
