import type { Duration } from "@bufbuild/protobuf/wkt";
import type { Violation } from "../errors/errors.ts";
import { utf8Length } from "../wire/bytes.ts";
import { refusal } from "./refusal.ts";

/** Unicode category Cc. */
const CONTROL_CHARACTER = /\p{Cc}/u;
const NANOS_PER_SECOND = 1_000_000_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

interface Length {
  readonly minBytes?: number;
  readonly maxBytes: number;
}

/** Collects the violations of a request, in the service's own words, so that its caller sees all of them at once. */
export class Violations {
  readonly #found: Violation[] = [];

  add(field: string, description: string): void {
    this.#found.push({ field, description });
  }

  /** Checks text that is stored and shown: its length in bytes of UTF-8, no control characters. */
  text(field: string, value: string, length: Length): void {
    this.length(field, utf8Length(value), length);
    if (CONTROL_CHARACTER.test(value)) this.add(field, "must not contain control characters");
  }

  /** Checks text that may have several lines. */
  prose(field: string, value: string, length: Length): void {
    this.length(field, utf8Length(value), length);
    if (value.includes("\0")) this.add(field, "must not contain U+0000");
  }

  length(field: string, bytes: number, { minBytes = 0, maxBytes }: Length): void {
    if (bytes >= minBytes && bytes <= maxBytes) return;
    const range =
      minBytes > 0 ? `must be ${minBytes}-${maxBytes} bytes` : `must be at most ${maxBytes} bytes`;
    this.add(field, `${range}, is ${bytes}`);
  }

  /** Returns a duration in whole milliseconds, rounded up; undefined if it is unset or invalid. */
  durationMs(
    field: string,
    value: Duration | undefined,
    { minMs, maxMs }: { readonly minMs: number; readonly maxMs: number },
  ): number | undefined {
    if (value === undefined) return undefined;
    const { seconds, nanos } = value;
    if (Math.abs(nanos) >= NANOS_PER_SECOND || (seconds > 0n && nanos < 0) || (seconds < 0n && nanos > 0)) {
      this.add(field, "must be a duration whose nanos are below one second and have the sign of its seconds");
      return undefined;
    }
    // A bigint too large for a number is far beyond any bound, also after its conversion.
    const durationMs = nanos < 0 ? -1 : Number(seconds) * 1000 + Math.ceil(nanos / 1_000_000);
    if (durationMs >= minMs && durationMs <= maxMs) return durationMs;
    this.add(field, `must be between ${describeMs(minMs)} and ${describeMs(maxMs)}`);
    return undefined;
  }

  /** Throws if there are violations. @throws OncewardError INVALID_REQUEST with all of them. */
  throwIfAny(): void {
    if (this.#found.length === 0) return;
    const summary = this.#found.map(({ field, description }) => `${field} ${description}`).join("; ");
    throw refusal("INVALID_REQUEST", summary, { violations: this.#found });
  }
}

function describeMs(ms: number): string {
  if (ms % DAY_MS === 0) return ms === DAY_MS ? "1 day" : `${ms / DAY_MS} days`;
  if (ms % HOUR_MS === 0) return `${ms / HOUR_MS} h`;
  return ms % 1000 === 0 ? `${ms / 1000} s` : `${ms} ms`;
}
