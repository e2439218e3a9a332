import { utf8Bytes, utf8Length, utf8Text } from "../wire/bytes.ts";
import { InvalidRequestError } from "./catalogue.ts";
import type { Violation } from "./errors.ts";

/** Unicode category Cc. */
const CONTROL_CHARACTER = /\p{Cc}/u;

/** Adds the violations of a text that is stored and shown: its length in bytes of UTF-8, and forbidden characters. */
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
  // On the wire each lone surrogate becomes U+FFFD, and different keys would become equal.
  if (!value.isWellFormed()) {
    violations.push({ field, description: "must be well-formed Unicode, without lone surrogates" });
  }
}

/** Throws if there are violations. @throws InvalidRequestError with all of them. */
export function throwIfAny(violations: readonly Violation[]): void {
  if (violations.length === 0) return;
  const summary = violations.map(({ field, description }) => `${field} ${description}`).join("; ");
  throw new InvalidRequestError(summary, { violations });
}

/** Returns the error of a request that is refused because of one field. */
export function refusedField(field: string, description: string, cause?: unknown): InvalidRequestError {
  return new InvalidRequestError(`${field} ${description}`, { violations: [{ field, description }], cause });
}

/** Checks that the value is a function, and not a generator's, of which a call runs nothing. @throws InvalidRequestError. */
export function checkFunction(field: string, value: unknown): void {
  if (typeof value !== "function") throw refusedField(field, `must be a function, is ${typeof value}`);
  if (Object.prototype.toString.call(value).endsWith("GeneratorFunction]"))
    throw refusedField(field, "must be a function that runs when it is called, is a generator function");
}

/** Checks that the value is a whole number within a range, both ends included. @throws InvalidRequestError. */
export function checkWholeNumber(field: string, value: unknown, min: number, max: number): void {
  if (Number.isSafeInteger(value) && Number(value) >= min && Number(value) <= max) return;
  throw refusedField(field, `must be a whole number, ${min}-${max}, is ${value}`);
}

/** Returns the longest prefix of whole characters with at most `maxBytes` of UTF-8, well-formed. */
export function truncateUtf8(text: string, maxBytes: number): string {
  const bytes = utf8Bytes(text);
  if (bytes.byteLength <= maxBytes) return text.toWellFormed();
  let endByte = maxBytes;
  // 0b10xxxxxx continues a character: a cut before it would leave half a character.
  while (endByte > 0 && ((bytes[endByte] ?? 0) & 0b1100_0000) === 0b1000_0000) endByte--;
  return utf8Text(bytes.subarray(0, endByte));
}
