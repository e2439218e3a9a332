import type { Duration, Timestamp } from "@bufbuild/protobuf/wkt";

// Messages that are part of nearly every reply are written out: `create` goes through the fields of each by its schema,
// which takes longer than all else that is done for a reply from memory.

/** From milliseconds since the epoch, to the microsecond. */
export function timestamp(ms: number): Timestamp {
  const seconds = Math.floor(ms / 1000);
  const micros = Math.round((ms - seconds * 1000) * 1000);
  const nanos = Math.min(micros, 999_999) * 1000;
  return { $typeName: "google.protobuf.Timestamp", seconds: BigInt(seconds), nanos };
}

/** Whole milliseconds, rounded down; none where it would be negative. */
export function duration(ms: number): Duration {
  const wholeMs = Math.max(0, Math.floor(ms));
  const seconds = Math.floor(wholeMs / 1000);
  const nanos = (wholeMs - seconds * 1000) * 1_000_000;
  return { $typeName: "google.protobuf.Duration", seconds: BigInt(seconds), nanos };
}

/** To milliseconds since the epoch, with what is finer than that as the fraction. */
export function timestampMs({ seconds, nanos }: Timestamp): number {
  return Number(seconds) * 1000 + nanos / 1e6;
}
