import type { Duration, Timestamp } from "@bufbuild/protobuf/wkt";

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

/** Converts to milliseconds since the Unix epoch, with a fraction. */
export function timestampMs({ seconds, nanos }: Timestamp): number {
  return Number(seconds) * 1000 + nanos / 1e6;
}
