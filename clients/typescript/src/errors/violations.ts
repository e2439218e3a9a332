import { InvalidRequestError } from "./catalogue.ts";
import type { Violation } from "./errors.ts";
import { utf8Bytes, utf8Length, utf8Text } from "../wire/utf8.ts";

/** Unicode category Cc. */
const CONTROL_CHARACTER = /\p{Cc}/u;

/** Adds what is wrong with a text that is stored and shown: its length in bytes of UTF-8, and what it may not hold. */
export function checkText(
  violations: Violation[],
  field: string,
  value: unknown,
  limits: { readonly minBytes: number; readonly maxBytes: number },
): void {
  if (typeof value !== "string") {
    violations.push({ field, description: `must be a string, is ${value === null ? "null" : typeof value}` });
    return;
  }
  const { minBytes, maxBytes } = limits;
  const bytes = utf8Length(value);
  if (bytes < minBytes || bytes > maxBytes) {
    violations.push({ field, description: `must be ${minBytes}-${maxBytes} bytes of UTF-8, is ${bytes}` });
  }
  if (CONTROL_CHARACTER.test(value)) {
    violations.push({ field, description: "must not contain control characters" });
  }
  // On the wire each would become U+FFFD, and different keys would become the same.
  if (!value.isWellFormed()) {
    violations.push({ field, description: "must be well-formed Unicode, without lone surrogates" });
  }
}

/** @throws InvalidRequestError with all of them. */
export function throwIfAny(violations: readonly Violation[]): void {
  if (violations.length === 0) return;
  const summary = violations.map(({ field, description }) => `${field} ${description}`).join("; ");
  throw new InvalidRequestError(summary, { violations });
}

/** What is refused for one field alone. */
export function refusedField(field: string, description: string, cause?: unknown): InvalidRequestError {
  return new InvalidRequestError(`${field} ${description}`, { violations: [{ field, description }], cause });
}

/** @throws InvalidRequestError unless it is a function. */
export function checkFunction(field: string, value: unknown): void {
  if (typeof value !== "function") throw refusedField(field, `must be a function, is ${typeof value}`);
}

/** The longest prefix of whole characters that fits, well-formed. */
export function truncateUtf8(text: string, maxBytes: number): string {
  const bytes = utf8Bytes(text);
  if (bytes.byteLength <= maxBytes) return text.toWellFormed();
  let endByte = maxBytes;
  // 0b10xxxxxx continues a character: cutting there would leave half of one.
  while (endByte > 0 && ((bytes[endByte] ?? 0) & 0b1100_0000) === 0b1000_0000) endByte--;
  return utf8Text(bytes.subarray(0, endByte));
}
