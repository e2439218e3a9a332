import { durationMs } from "@bufbuild/protobuf/wkt";
import type { UsageNow } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { rateWords, refusedCount } from "@onceward/words/refusals";
import { formatLatency } from "@onceward/words/words";
import { formatCount, formatRate } from "../../format/quantity.ts";
import { DataTable } from "../../parts/data-table.tsx";
import { NamespaceLinks } from "../../parts/namespace-links.tsx";

/** Returns the last minute in words. */
export function nowWords(now: UsageNow): string {
  return [rateWords(now), ...(now.p99Latency === undefined ? [] : [`p99 ${latency(now.p99Latency)}`])].join(
    ", ",
  );
}

/** The last minute of the busiest namespaces. */
export function NowTable({ namespaces }: { readonly namespaces: readonly UsageNow[] }) {
  return (
    <DataTable
      caption="Now, by namespace: the last minute"
      rows={namespaces.slice(0, MAX_ROWS)}
      rowKey={({ namespace }) => namespace}
      columns={[
        ["Namespace", ({ namespace: of }) => (of ? <NamespaceLinks names={[of]} /> : "Without one")],
        ["Claims a second", ({ claimsPerSecond }) => formatRate(claimsPerSecond), "number"],
        ["Duplicates stopped", ({ duplicates }) => formatCount(duplicates), "number"],
        ["Refused", (now) => formatCount(refusedCount(now)), "number"],
        ["p50", ({ medianLatency }) => latency(medianLatency), "number"],
        ["p99", ({ p99Latency }) => latency(p99Latency), "number"],
      ]}
    />
  );
}

const MAX_ROWS = 10;

function latency(duration: UsageNow["p99Latency"]): string {
  return duration === undefined ? "–" : formatLatency(durationMs(duration));
}
