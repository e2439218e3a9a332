import { type Duration, durationMs } from "@bufbuild/protobuf/wkt";
import { formatDuration } from "../../format/duration.ts";

/** Returns how a replica's clock differs from the database's, such as "12 ms ahead". */
export function clockWords(offset: Duration | undefined): string {
  if (offset === undefined) return "-";
  const aheadMs = durationMs(offset);
  if (aheadMs === 0) return "in step";
  return `${formatDuration(Math.abs(aheadMs))} ${aheadMs > 0 ? "ahead" : "behind"}`;
}
