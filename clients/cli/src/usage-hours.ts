import type { Timestamp } from "@bufbuild/protobuf/wkt";
import type { TenantAdmin } from "@onceward/client/admin";
import type { GetUsageRequest_Grouping, UsageHour } from "@onceward/client/proto";
import { collectPages, type Listed } from "./pages.ts";
import type { Session } from "./session.ts";

interface Filter {
  readonly namespace: string;
  readonly after?: Timestamp;
  readonly before?: Timestamp;
  readonly grouping?: GetUsageRequest_Grouping;
}

/** Returns the entries of usage that match a filter, up to a limit. */
export function collectUsage(
  { client, call }: Pick<Session<Pick<TenantAdmin, "getUsage">>, "client" | "call">,
  filter: Filter,
  limit: number,
): Promise<Listed<UsageHour>> {
  return collectPages(limit, "hours", (page) => client.getUsage({ ...filter, ...page }, call));
}

/** Returns the sum of a counter over entries. */
export function sumOf<Counter extends keyof UsageHour>(
  hours: readonly Readonly<Record<Counter, bigint>>[],
  counter: Counter,
): bigint {
  return hours.reduce((sum, hour) => sum + hour[counter], 0n);
}
