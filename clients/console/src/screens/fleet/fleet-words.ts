import { type Duration, durationMs } from "@bufbuild/protobuf/wkt";
import type { Replica } from "@onceward/gen/onceward/v1/operator_pb.ts";
import { formatDuration } from "../../format/duration.ts";
import { formatNoun } from "../../format/quantity.ts";

/** Returns how a replica's clock differs from the database's, such as "12 ms ahead". */
export function clockWords(offset: Duration | undefined): string {
  if (offset === undefined) return "-";
  const aheadMs = durationMs(offset);
  if (aheadMs === 0) return "in step";
  return `${formatDuration(Math.abs(aheadMs))} ${aheadMs > 0 ? "ahead" : "behind"}`;
}

/** Returns which versions run, such as "Version 0.1.0 on all 3 replicas", the most frequent first. */
export function versionWords(replicas: readonly Pick<Replica, "version">[]): string {
  const counts = new Map<string, number>();
  for (const { version } of replicas) counts.set(version, (counts.get(version) ?? 0) + 1);
  const [first, ...others] = [...counts].sort(([, a], [, b]) => b - a);
  if (first === undefined) return "No replica is live";
  const [version, count] = first;
  if (others.length === 0) {
    return count === 1
      ? `Version ${version} on the only replica`
      : `Version ${version} on all ${count} replicas`;
  }
  const each = [first, ...others].map(([name, of]) => `${name} on ${formatNoun(of, "replica", "replicas")}`);
  return `${counts.size} versions: ${each.join(", ")}. Normal only during an upgrade`;
}
