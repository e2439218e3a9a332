import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { useQuery } from "@connectrpc/connect-query";
import { GetUsageRequest_Grouping, TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import type { UsageHour } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { useState } from "react";
import { formatCount, formatNoun } from "../format/quantity.ts";

/** The days that late duplicates are counted in. */
export const DAYS = 30;

type Counter = "claims" | "lateKeysRefused" | "lateKeysGranted" | "withoutKeyTime";

/** What each choice about keys that are too old does. */
const MEANING: Readonly<Record<string, string>> = {
  run: "A duplicate that comes after its key was forgotten runs again.",
  refuse:
    "A duplicate that comes after its key was forgotten is refused, if the time at which the key was made is known: from the key, if " +
    "it is a UUID of version 7 or a ULID, or from the caller. A person then has to find out what happened.",
  "require-time":
    "A duplicate that comes after its key was forgotten is refused, and a person then has to find out what happened. Every claim whose " +
    "key has no known time is refused, too. So no key runs twice, if all deliveries of an operation carry the same time.",
};

/**
 * Explains a choice about keys that are too old, with the claims of the last 30 days that it concerns: every one is counted, none is
 * estimated.
 *
 * @param namespace "" for all of the tenant's.
 */
export function LateClaims({ namespace, choice }: { readonly namespace: string; readonly choice: string }) {
  const { hours } = useUsageDays(namespace, DAYS);
  return (
    <>
      <p>{MEANING[choice]}</p>
      {hours !== undefined && (
        <p>
          Of {sum(hours, "claims")} claims in the last {DAYS} days, {sum(hours, "lateKeysRefused")} were
          refused because their key was too old, {sum(hours, "lateKeysGranted")} ran although it was, and for{" "}
          {sum(hours, "withoutKeyTime")} its time was unknown.
        </p>
      )}
    </>
  );
}

/** Shows how many duplicates came after their key was forgotten, in the last 30 days; nothing if there was none. */
export function LateDuplicates({ namespace }: { readonly namespace: string }) {
  const { hours = [] } = useUsageDays(namespace, DAYS);
  const refused = hours.reduce((total, hour) => total + hour.lateKeysRefused, 0n);
  const granted = hours.reduce((total, hour) => total + hour.lateKeysGranted, 0n);
  if (refused + granted === 0n) return undefined;
  return (
    <p>
      Counted in the last {DAYS} days: {formatNoun(refused, "duplicate", "duplicates")} refused because the
      key was too old, and {formatCount(granted)} that ran although it was. "Late keys" below decides about
      them.
    </p>
  );
}

function sum(hours: readonly UsageHour[], counter: Counter): string {
  return formatCount(hours.reduce((total, hour) => total + hour[counter], 0n));
}

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
/** An hour is one row of usage: 30 days are 720, and one page has 1,000. */
const MAX_HOURS = 1_000;

/**
 * Returns the usage of a namespace in the last days, at most 30; no hours until they are answered. All users of the same days share one request.
 *
 * @param namespace "" for all of the tenant's together, without the lateness of duplicates.
 */
export function useUsageDays(namespace: string, days: number) {
  // Whole hours: the request stays the same while the screen is open.
  const [now] = useState(() => new Date(Math.ceil(Date.now() / HOUR_MS) * HOUR_MS));
  const after = new Date(now.getTime() - days * DAY_MS);
  const usage = useQuery(TenantAdminService.method.getUsage, {
    namespace,
    after: timestampFromDate(after),
    pageSize: MAX_HOURS,
    ...(namespace === "" && { grouping: GetUsageRequest_Grouping.HOUR }),
  });
  return { after, now, hours: usage.data?.hours, isPending: usage.isPending };
}
