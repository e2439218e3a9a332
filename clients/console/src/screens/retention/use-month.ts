import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { useQuery } from "@connectrpc/connect-query";
import { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import type { UsageHour } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { useState } from "react";

const DAYS_SHOWN = 30;
const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
/** An hour of a namespace is one row of usage: 30 days are 720, and one page has 1,000. */
const MAX_HOURS = 1_000;

/** The last 30 days of a namespace; no hours until they are answered. */
export interface Month {
  readonly after: Date;
  readonly now: Date;
  readonly hours: readonly UsageHour[];
}

/** Returns the usage of a namespace in the last 30 days. All users of the screen share one request. */
export function useMonth(namespace: string): Month {
  // Whole hours: the request stays the same while the screen is open.
  const [now] = useState(() => new Date(Math.ceil(Date.now() / HOUR_MS) * HOUR_MS));
  const after = new Date(now.getTime() - DAYS_SHOWN * DAY_MS);
  const usage = useQuery(TenantAdminService.method.getUsage, {
    namespace,
    after: timestampFromDate(after),
    pageSize: MAX_HOURS,
  });
  return { after, now, hours: usage.data?.hours ?? [] };
}
