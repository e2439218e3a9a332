import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";

/** To the millisecond. An Invalid Date for a timestamp that the service should have sent and did not. */
export function dateOf(timestamp: Timestamp | undefined): Date {
  return timestamp === undefined ? new Date(Number.NaN) : timestampDate(timestamp);
}
