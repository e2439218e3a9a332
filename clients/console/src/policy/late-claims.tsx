import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { useQuery } from "@connectrpc/connect-query";
import { GetUsageRequest_Grouping, TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import { useState } from "react";
import { DAY_MS, HOUR_MS } from "../format/duration.ts";
import { formatCount, formatNoun } from "../format/quantity.ts";

/** The days that late duplicates are counted in. */
const DAYS = 30;

const COUNTERS = ["claims", "lateKeysRefused", "lateKeysGranted", "withoutKeyTime"] as const;
type Counter = (typeof COUNTERS)[number];

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
  const counts = useCounts(namespace);
  return (
    <>
      <p>{MEANING[choice]}</p>
      {counts !== undefined && (
        <p>
          Of {formatCount(counts.claims)} claims in the last {DAYS} days,{" "}
          {formatCount(counts.lateKeysRefused)} were refused because their key was too old,{" "}
          {formatCount(counts.lateKeysGranted)} ran although it was, and for{" "}
          {formatCount(counts.withoutKeyTime)} its time was unknown.
        </p>
      )}
    </>
  );
}

/** Shows how many duplicates came after their key was forgotten, in the last 30 days; nothing if there was none. */
export function LateDuplicates({ namespace }: { readonly namespace: string }) {
  const { lateKeysRefused: refused = 0n, lateKeysGranted: granted = 0n } = useCounts(namespace) ?? {};
  if (refused + granted === 0n) return undefined;
  return (
    <p>
      Counted in the last {DAYS} days: {formatNoun(refused, "duplicate", "duplicates")} refused because the
      key was too old, and {formatCount(granted)} that ran although it was. "Late keys" below decides about
      them.
    </p>
  );
}

/** An hour is one row of usage: 30 days are 720, and one page has 1,000. */
const MAX_HOURS = 1_000;

/** Returns the counts of a namespace, or with "" of the tenant, in the last 30 days; undefined until they are answered. */
function useCounts(namespace: string): Readonly<Record<Counter, bigint>> | undefined {
  // Whole hours: the request stays the same while the screen is open.
  const [now] = useState(() => Math.ceil(Date.now() / HOUR_MS) * HOUR_MS);
  const { data } = useQuery(TenantAdminService.method.getUsage, {
    namespace,
    after: timestampFromDate(new Date(now - DAYS * DAY_MS)),
    pageSize: MAX_HOURS,
    ...(namespace === "" && { grouping: GetUsageRequest_Grouping.HOUR }),
  });
  const sum = (counter: Counter) => data?.hours.reduce((total, hour) => total + hour[counter], 0n);
  return (
    data &&
    (Object.fromEntries(COUNTERS.map((counter) => [counter, sum(counter)])) as Record<Counter, bigint>)
  );
}
