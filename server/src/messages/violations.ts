import type { Duration, Timestamp } from "@bufbuild/protobuf/wkt";
import { Refusal, type Violation } from "../domain/refusal.ts";
import { timestampMs } from "./wire-times.ts";

/**
 * Of all fields and descriptions. They travel twice in the trailers of gRPC, once in base64, and some clients take no more
 * than 8 KiB of those: a refusal beyond would end the connection for all its calls. Whatever RPC it is, every field of it
 * can be told within this; only a list or a map of things that are each wrong in another way is told in part.
 */
const MAX_TOLD_BYTES = 2500;

/** Collects everything that is wrong with a request, so that its caller hears of it at once. */
export class Violations {
  /** Made for the first one: nearly every request has none. */
  #found: Violation[] | undefined;
  #toldBytes = 0;

  /** What was said of a field before isn't said again. */
  add(field: string, description: string): void {
    this.#found ??= [];
    if (this.#found.some((known) => known.field === field && known.description === description)) return;
    this.#toldBytes += Buffer.byteLength(field) + Buffer.byteLength(description);
    if (this.#toldBytes <= MAX_TOLD_BYTES) this.#found.push({ field, description });
  }

  /** Text that is stored and shown: within a length in bytes of UTF-8, and nothing in it that a terminal would obey. */
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

  /** Text that may run over several lines. */
  prose(field: string, value: string, limits: { readonly maxBytes: number }): void {
    this.#length(field, Buffer.byteLength(value), limits);
    if (value.includes("\0")) this.add(field, "must not contain U+0000");
    this.#wellFormed(field, value);
  }

  /** Bytes within a length. */
  bytes(field: string, value: Uint8Array, limits: { readonly maxBytes: number }): void {
    this.#length(field, value.byteLength, limits);
  }

  /**
   * A duration in whole milliseconds, rounded up, if it is one and within bounds; undefined if it is unset or a violation
   * was found.
   */
  durationMs(
    field: string,
    value: Duration | undefined,
    { minMs, maxMs }: { readonly minMs: number; readonly maxMs: number },
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
    // A bigint compares with a number exactly, and one beyond the bounds isn't converted.
    const beyond = seconds < 0n || nanos < 0 || seconds > maxMs / 1000;
    const durationMs = beyond ? Number.NaN : Number(seconds) * 1000 + Math.ceil(nanos / 1_000_000);
    if (durationMs >= minMs && durationMs <= maxMs) return durationMs;
    this.add(field, `must be between ${describeMs(minMs)} and ${describeMs(maxMs)}`);
    return undefined;
  }

  /** A moment in milliseconds since the Unix epoch, if it is one; undefined if it is unset or a violation was found. */
  timestampMs(field: string, value: Timestamp | undefined): number | undefined {
    if (value === undefined) return undefined;
    const { seconds, nanos } = value;
    if (seconds >= MIN_TIMESTAMP_S && seconds <= MAX_TIMESTAMP_S && nanos >= 0 && nanos < 1_000_000_000) {
      return Math.min(timestampMs(value), MAX_TIMESTAMP_MS);
    }
    this.add(field, "must be a moment of the years 1 to 9999, with nanos of less than a second");
    return undefined;
  }

  /** @throws Refusal INVALID_REQUEST with everything that was found. */
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
    this.add(field, `${range}, is ${bytes}`);
  }

  /** Lone surrogates come in through JSON; they would all be stored as U+FFFD, and different keys would collide. */
  #wellFormed(field: string, value: string): void {
    if (!value.isWellFormed()) this.add(field, "must be well-formed Unicode, without lone surrogates");
  }
}

/** What google.protobuf.Timestamp allows. */
const MIN_TIMESTAMP_S = -62_135_596_800n;
const MAX_TIMESTAMP_S = 253_402_300_799n;
/** A number has no room for nanoseconds then: the last of them would become the year 10000, which no reply can say. */
const MAX_TIMESTAMP_MS = 253_402_300_799_999;

/** As nearly every key is: as many bytes as characters, and none of them to be objected to. */
const PRINTABLE_ASCII = /^[ -~]*$/;
/** Unicode category Cc. */
const CONTROL_CHARACTER = /\p{Cc}/u;

function describeMs(ms: number): string {
  return ms % 1000 === 0 ? `${ms / 1000} s` : `${ms} ms`;
}
