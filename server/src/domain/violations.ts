import type { Duration, Timestamp } from "@bufbuild/protobuf/wkt";
import { describeLimitMs, MAX_TIMESTAMP_MS, NAMESPACE_PATTERN, NAMESPACE_RULE } from "./limits.ts";
import { Refusal, type Violation } from "./refusal.ts";

/**
 * The most bytes of all fields and descriptions. gRPC sends them twice in its trailers, once in base64, and some clients accept
 * no more than 8 KiB of trailers: a larger refusal would end the connection for all its calls. Within this limit every field of
 * every RPC can be reported; only violations of many elements of a list or a map may be omitted.
 */
const MAX_REPORTED_BYTES = 2500;

/** Collects all violations of a request, so that one error reports them together. */
export class Violations {
  /** Created for the first violation: nearly every request has none. */
  #found: Violation[] | undefined;
  #reportedBytes = 0;

  /** Adds a violation, unless the same one was added before. */
  add(field: string, description: string): void {
    this.#found ??= [];
    if (this.#found.some((known) => known.field === field && known.description === description)) return;
    this.#reportedBytes += Buffer.byteLength(field) + Buffer.byteLength(description);
    if (this.#reportedBytes <= MAX_REPORTED_BYTES) this.#found.push({ field, description });
  }

  /** Checks text that is stored and shown: its length in bytes of UTF-8, and that it has no control characters. */
  text(
    field: string,
    value: string,
    limits: { readonly minBytes?: number; readonly maxBytes: number },
  ): void {
    if (PRINTABLE_ASCII.test(value)) {
      this.#length(field, value.length, limits);
      return;
    }
    this.#length(field, Buffer.byteLength(value), limits);
    if (CONTROL_CHARACTER.test(value)) this.add(field, "must not contain control characters");
    this.#wellFormed(field, value);
  }

  /** Checks the name of a tenant or of a namespace; returns whether it is one. */
  name(field: string, value: string): boolean {
    const isName = NAMESPACE_PATTERN.test(value);
    if (!isName) this.add(field, value === "" ? `is missing: it ${NAMESPACE_RULE}` : NAMESPACE_RULE);
    return isName;
  }

  /** Checks text that may have several lines. */
  prose(field: string, value: string, limits: { readonly maxBytes: number }): void {
    this.#length(field, Buffer.byteLength(value), limits);
    if (value.includes("\0")) this.add(field, "must not contain U+0000");
    this.#wellFormed(field, value);
  }

  /** Checks the length of bytes. */
  bytes(field: string, value: Uint8Array, limits: { readonly maxBytes: number }): void {
    this.#length(field, value.byteLength, limits);
  }

  /**
   * Returns a duration in whole milliseconds, rounded up; undefined if it is unset, malformed or out of bounds. Adds a violation
   * for the latter two; `maxIs` says where the maximum comes from.
   */
  durationMs(
    field: string,
    value: Duration | undefined,
    { minMs, maxMs, maxIs }: { readonly minMs: number; readonly maxMs: number; readonly maxIs?: string },
  ): number | undefined {
    if (value === undefined) return undefined;
    const { seconds, nanos } = value;
    if (
      nanos <= -1_000_000_000 ||
      nanos >= 1_000_000_000 ||
      (seconds > 0n && nanos < 0) ||
      (seconds < 0n && nanos > 0)
    ) {
      this.add(field, "must be a duration whose nanos are below one second and have the sign of its seconds");
      return undefined;
    }
    // Comparing a bigint with a number is exact; a bigint beyond the bounds is not converted.
    const beyond = seconds < 0n || nanos < 0 || seconds > maxMs / 1000;
    const durationMs = beyond ? Number.NaN : Number(seconds) * 1000 + Math.ceil(nanos / 1_000_000);
    if (durationMs >= minMs && durationMs <= maxMs) return durationMs;
    const why = maxIs === undefined ? "" : `, ${maxIs}`;
    this.add(field, `must be between ${describeLimitMs(minMs)} and ${describeLimitMs(maxMs)}${why}`);
    return undefined;
  }

  /** Returns a timestamp in milliseconds since the Unix epoch; undefined if it is unset, or malformed, which is a violation. */
  timestampMs(field: string, value: Timestamp | undefined): number | undefined {
    if (value === undefined) return undefined;
    const { seconds, nanos } = value;
    if (seconds >= MIN_TIMESTAMP_S && seconds <= MAX_TIMESTAMP_S && nanos >= 0 && nanos < 1_000_000_000) {
      return Math.min(timestampMs(value), MAX_TIMESTAMP_MS);
    }
    this.add(field, "must be a moment of the years 1 to 9999, with nanos of less than a second");
    return undefined;
  }

  /** @throws Refusal INVALID_REQUEST with all violations, if there are any. */
  throwIfAny(): void {
    if (this.#found === undefined) return;
    const summary = this.#found.map(({ field, description }) => `${field} ${description}`).join("; ");
    throw new Refusal("INVALID_REQUEST", summary, { violations: this.#found });
  }

  #length(
    field: string,
    bytes: number,
    limits: { readonly minBytes?: number; readonly maxBytes: number },
  ): void {
    const { minBytes = 0, maxBytes } = limits;
    if (bytes >= minBytes && bytes <= maxBytes) return;
    const range =
      minBytes > 0 ? `must be ${minBytes}-${maxBytes} bytes` : `must be at most ${maxBytes} bytes`;
    this.add(field, bytes === 0 ? `is missing: it ${range}` : `${range}, is ${bytes}`);
  }

  /** Lone surrogates can arrive in JSON. All would be stored as U+FFFD, so that different keys would collide. */
  #wellFormed(field: string, value: string): void {
    if (!value.isWellFormed()) this.add(field, "must be well-formed Unicode, without lone surrogates");
  }
}

/** The range of google.protobuf.Timestamp. */
const MIN_TIMESTAMP_S = -62_135_596_800n;
const MAX_TIMESTAMP_S = 253_402_300_799n;

/** Nearly every key matches: one byte per character, and no control characters. */
const PRINTABLE_ASCII = /^[ -~]*$/;
/** Unicode category Cc. */
const CONTROL_CHARACTER = /\p{Cc}/u;

// Messages that are part of nearly every reply are object literals: `create` walks the schema of each, which takes longer than
// everything else that is done for a reply from memory.

/** Converts milliseconds since the Unix epoch, to the microsecond. */
export function timestamp(ms: number): Timestamp {
  const seconds = Math.floor(ms / 1000);
  const micros = Math.round((ms - seconds * 1000) * 1000);
  const nanos = Math.min(micros, 999_999) * 1000;
  return { $typeName: "google.protobuf.Timestamp", seconds: BigInt(seconds), nanos };
}

/** Converts milliseconds, rounded down to whole ones; a negative duration becomes 0. */
export function duration(ms: number): Duration {
  const wholeMs = Math.max(0, Math.floor(ms));
  const seconds = Math.floor(wholeMs / 1000);
  const nanos = (wholeMs - seconds * 1000) * 1_000_000;
  return { $typeName: "google.protobuf.Duration", seconds: BigInt(seconds), nanos };
}

/** Converts milliseconds, rounded to whole ones, which may be negative: both parts have the same sign. */
export function signedDuration(ms: number): Duration {
  const { seconds, nanos } = duration(Math.round(Math.abs(ms)));
  return ms < 0
    ? { $typeName: "google.protobuf.Duration", seconds: -seconds, nanos: -nanos }
    : { $typeName: "google.protobuf.Duration", seconds, nanos };
}

/** Converts to milliseconds since the Unix epoch, with a fraction. */
export function timestampMs({ seconds, nanos }: Timestamp): number {
  return Number(seconds) * 1000 + nanos / 1e6;
}
