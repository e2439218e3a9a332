import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { useQuery } from "@connectrpc/connect-query";
import { GetUsageRequest_Grouping, TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import type { UsageHour } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { useState } from "react";
import { formatCount } from "../format/quantity.ts";

const HOUR_MS = 3_600_000;
/** A week has each of its days. */
const HOURS = 7 * 24;

type Counter = "claims" | "lateKeysRefused" | "lateKeysGranted" | "withoutKeyTime";

/** What each choice about keys that are too old does. */
const MEANING: Readonly<Record<string, string>> = {
  run: "A repeat that comes after its key was forgotten runs again.",
  refuse:
    "A repeat that comes after its key was forgotten is refused, if the time at which the key was made is known: from the key, if " +
    "it is a UUID of version 7 or a ULID, or from the caller. A person then has to find out what happened.",
  "require-time":
    "A repeat that comes after its key was forgotten is refused, and a person then has to find out what happened. Every claim whose " +
    "key has no known time is refused, too. So no key runs twice, if all deliveries of an operation carry the same time.",
};

/**
 * Explains a choice about keys that are too old, with the claims of the last 7 days that it would have refused.
 *
 * @param namespace "" for all of the tenant's.
 */
export function LateClaims({ namespace, choice }: { readonly namespace: string; readonly choice: string }) {
  // Whole hours: the request stays the same while the dialog is open.
  const [after] = useState(() => new Date((Math.floor(Date.now() / HOUR_MS) - HOURS) * HOUR_MS));
  const usage = useQuery(TenantAdminService.method.getUsage, {
    namespace,
    after: timestampFromDate(after),
    grouping: GetUsageRequest_Grouping.HOUR,
    pageSize: HOURS + 1,
  });
  return (
    <>
      <p>{MEANING[choice]}</p>
      {usage.data !== undefined && <p>{describe(usage.data.hours)}</p>}
    </>
  );
}

function describe(hours: readonly UsageHour[]): string {
  const sum = (counter: Counter) => formatCount(hours.reduce((total, hour) => total + hour[counter], 0n));
  return (
    `Of ${sum("claims")} claims in the last 7 days, ${sum("lateKeysRefused")} were refused because their key was too old, ` +
    `${sum("lateKeysGranted")} ran although it was, and for ${sum("withoutKeyTime")} its time was unknown.`
  );
}
