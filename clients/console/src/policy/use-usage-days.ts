import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { useQuery } from "@connectrpc/connect-query";
import { GetUsageRequest_Grouping, TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import type { UsageHour } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { useState } from "react";

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
/** An hour is one row of usage: 30 days are 720, and one page has 1,000. */
const MAX_HOURS = 1_000;

/** The last days of use; no hours until they are answered. */
export interface UsageDays {
  readonly after: Date;
  readonly now: Date;
  readonly hours: readonly UsageHour[] | undefined;
}

/**
 * Returns the usage of a namespace in the last days, at most 30. All users of the same days share one request.
 *
 * @param namespace "" for all of the tenant's together, without the lateness of duplicates.
 */
export function useUsageDays(namespace: string, days: number): UsageDays {
  // Whole hours: the request stays the same while the screen is open.
  const [now] = useState(() => new Date(Math.ceil(Date.now() / HOUR_MS) * HOUR_MS));
  const after = new Date(now.getTime() - days * DAY_MS);
  const usage = useQuery(TenantAdminService.method.getUsage, {
    namespace,
    after: timestampFromDate(after),
    pageSize: MAX_HOURS,
    ...(namespace === "" && { grouping: GetUsageRequest_Grouping.HOUR }),
  });
  return { after, now, hours: usage.data?.hours };
}
