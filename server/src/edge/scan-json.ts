import { malformed } from "./errors.ts";

/** Objects and lists within each other. Requests have at most seven. */
const MAX_DEPTH = 32;
/**
 * Characters of a number, as a number or as a text of digits: 64-bit numbers may be written as texts, and to read one takes
 * the square of its length. More is allowed than a metadata value may have, which may consist of digits.
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
 * Judges JSON by what it consists of, before it is parsed; whether it is JSON at all is left to the parser.
 *
 * @throws Refusal INVALID_REQUEST for more than `maxValues` members and elements, for more than 32 levels, and for a number of
 *   more than 4,096 digits.
 */
export function scanJson(json: Uint8Array, maxValues: number): void {
  let depth = 0;
  let values = 0;
  for (let at = 0; at < json.length; at++) {
    switch (json[at]) {
      case QUOTE: {
        const end = endOfText(json, at + 1);
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

/** Where the quote stands that ends a text, or, if none does, the end. */
function endOfText(json: Uint8Array, start: number): number {
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
