import { type Timestamp, timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { InvalidArgumentError } from "commander";
import { readDurationMs } from "./durations.ts";

const RFC_3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/;

/** A moment as RFC 3339 has it, or how long ago it was: 24h. @throws InvalidArgumentError. */
export function parsePast(text: string): Timestamp {
  return parseMoment(text, -1);
}

/** A moment as RFC 3339 has it, or how far off it is: 90d. @throws InvalidArgumentError. */
export function parseFuture(text: string): Timestamp {
  return parseMoment(text, 1);
}

function parseMoment(text: string, direction: 1 | -1): Timestamp {
  const distanceMs = readDurationMs(text);
  if (distanceMs !== undefined) return timestampFromMs(Date.now() + direction * distanceMs);
  if (RFC_3339.test(text) && !Number.isNaN(Date.parse(text))) return timestampFromMs(Date.parse(text));
  throw new InvalidArgumentError(
    "It must be a time such as 2026-01-31T09:00:00Z, or a duration such as 24h.",
  );
}

/** To the second, UTC; "-" for none. */
export function formatMoment(moment: Timestamp | undefined): string {
  if (moment === undefined) return "-";
  return new Date(timestampMs(moment)).toISOString().replace(/\.\d+Z$/, "Z");
}
