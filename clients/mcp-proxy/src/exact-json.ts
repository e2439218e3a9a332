import { UsageError } from "./failure.ts";

/** JSON's source text (https://github.com/tc39/proposal-json-parse-with-source), which Node has since 22. */
interface JsonWithSource {
  parse(
    text: string,
    reviver: (name: string, value: unknown, context: { readonly source?: string }) => unknown,
  ): unknown;
  rawJSON?(text: string): unknown;
}
const SourceJson = JSON as unknown as JsonWithSource;

/** A number of a JSON text that JavaScript would change, such as 9007199254740993. JSON.stringify writes it as it was. */
export class ExactNumber {
  readonly source: string;

  constructor(source: string) {
    this.source = source;
  }

  toJSON(): unknown {
    return SourceJson.rawJSON?.(this.source);
  }
}

/** @throws UsageError if this Node can't keep the source text of numbers. */
export function checkExactNumbers(): void {
  if (SourceJson.rawJSON === undefined) throw new UsageError("onceward-mcp-proxy needs Node 22 or later.");
}

/** Returns the value of a JSON text; numbers that JavaScript would change are {@link ExactNumber}s. @throws SyntaxError. */
export function parseExact(text: string): unknown {
  return SourceJson.parse(text, (_, value, { source }) => {
    if (typeof value !== "number" || source === undefined) return value;
    // 2^53 is also how JavaScript reads 2^53 + 1: fingerprints take neither.
    const isExact = decimalOf(String(value)) === decimalOf(source) && !isRounded(value);
    return isExact ? value : new ExactNumber(source);
  });
}

/** Whether a number may stand for other whole numbers; from 10^21 on, JSON writes it with an exponent, as a double. */
function isRounded(value: number): boolean {
  return Math.abs(value) > Number.MAX_SAFE_INTEGER && Math.abs(value) < 1e21;
}

/**
 * Returns the same value with an object in the place of each {@link ExactNumber}, for a fingerprint: equal only for equal
 * source texts, and equal to no other number.
 */
export function fingerprintable(value: unknown): unknown {
  if (value instanceof ExactNumber) return { "onceward/number": value.source };
  if (Array.isArray(value)) return value.map(fingerprintable);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, fingerprintable(each)]));
}

/** Returns one text for all ways to write a number, so that 1.0 is 1; undefined for Infinity. */
function decimalOf(text: string): string | undefined {
  const [, sign, whole = "", fraction = "", exponent = "0"] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text) ?? [];
  if (sign === undefined) return undefined;
  const digits = `${whole}${fraction}`.replace(/^0+/, "");
  const significant = digits.replace(/0+$/, "");
  if (significant === "") return "0";
  return `${sign}${significant}e${Number(exponent) - fraction.length + digits.length - significant.length}`;
}
