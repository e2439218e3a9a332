import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { TenantAdmin } from "@onceward/client/admin";
import { GetUsageRequest_Grouping, type UsageHour } from "@onceward/client/proto";
import type { Session } from "./session.ts";
import { renderTable } from "./table.ts";
import { formatDuration } from "./times.ts";
import { collectUsage, sumOf } from "./usage-hours.ts";

/** How much of the past shows what a policy for late keys would refuse: a week has each of its days. */
const PERIOD_MS = 7 * 86_400_000;
const PERIOD_HOURS = PERIOD_MS / 3_600_000 + 1;

/** The counters of claims that a policy for late keys refuses. */
export type LateClaims = Pick<UsageHour, "claims" | "lateKeysRefused" | "lateKeysGranted" | "withoutKeyTime">;

/** Returns the sums of the last 7 days: of a namespace, or of all of them for "". */
export async function countLateClaims(
  session: Pick<Session<TenantAdmin>, "client" | "call">,
  namespace: string,
): Promise<LateClaims> {
  const grouping = GetUsageRequest_Grouping.HOUR;
  const filter = { namespace, grouping, after: timestampFromMs(Date.now() - PERIOD_MS) };
  const { items } = await collectUsage(session, filter, PERIOD_HOURS);
  return {
    claims: sumOf(items, "claims"),
    lateKeysRefused: sumOf(items, "lateKeysRefused"),
    lateKeysGranted: sumOf(items, "lateKeysGranted"),
    withoutKeyTime: sumOf(items, "withoutKeyTime"),
  };
}

/** Returns what each choice of `--late-keys` would have refused, for a person who is about to choose. */
export function describeLateClaims(counts: LateClaims): string {
  return renderTable(
    [`claims of the last ${formatDuration(durationFromMs(PERIOD_MS))}`, `${counts.claims}`, ""],
    [
      ["refused: key too old", `${counts.lateKeysRefused}`, ""],
      ["granted: key too old", `${counts.lateKeysGranted}`, "refuse and require-time refuse these"],
      ["time of the key unknown", `${counts.withoutKeyTime}`, "require-time refuses these"],
    ],
  );
}
