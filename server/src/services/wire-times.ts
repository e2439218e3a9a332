import { create } from "@bufbuild/protobuf";
import { type Duration, DurationSchema, type Timestamp, TimestampSchema } from "@bufbuild/protobuf/wkt";

/** From milliseconds since the epoch, to the microsecond. */
export function timestamp(ms: number): Timestamp {
  const seconds = Math.floor(ms / 1000);
  const micros = Math.round((ms - seconds * 1000) * 1000);
  return create(TimestampSchema, { seconds: BigInt(seconds), nanos: Math.min(micros, 999_999) * 1000 });
}

/** Whole milliseconds, rounded down; none where it would be negative. */
export function duration(ms: number): Duration {
  const wholeMs = Math.max(0, Math.floor(ms));
  const seconds = Math.floor(wholeMs / 1000);
  return create(DurationSchema, { seconds: BigInt(seconds), nanos: (wholeMs - seconds * 1000) * 1_000_000 });
}

/** To milliseconds since the epoch, with what is finer than that as the fraction. */
export function timestampMs({ seconds, nanos }: Timestamp): number {
  return Number(seconds) * 1000 + nanos / 1e6;
}
