import { createOperator, type TenantUsage, TenantUsageSchema } from "@onceward/client/admin";
import type { Command } from "commander";
import type { Host } from "../host.ts";
import type { Column } from "../output.ts";
import { collectPages } from "../pages.ts";
import { sessions } from "../session.ts";
import { formatMoment } from "../times.ts";
import { command, type LimitOption, withLimit } from "./group.ts";

const COLUMNS: readonly Column<TenantUsage>[] = [
  ["TENANT", ({ tenant }) => tenant],
  ["RECENT CLAIMS", ({ recentClaims }) => `${recentClaims}`],
  ["SINCE", ({ recentSince }) => formatMoment(recentSince)],
  ["LIVE RECORDS", ({ liveRecords, quotas }) => ofQuota(liveRecords, quotas?.liveRecords)],
  ["STORED BYTES", ({ storedBytes, quotas }) => ofQuota(storedBytes, quotas?.storedBytes)],
  ["NAMESPACES", ({ declaredNamespaces }) => `${declaredNamespaces}`],
  ["JOBS", ({ unfinishedRecordJobs }) => `${unfinishedRecordJobs}`],
];

/** Returns `operator usage`. */
export function tenantUsageCommand(host: Host): Command {
  const asOperator = sessions(host, createOperator);
  return withLimit(
    command(
      "usage [tenant]",
      "Lists tenants, or one of them, with their use beside their quotas. Records and bytes are counted only while a quota for them is set.",
      "operator usage",
      "operator usage acme",
      "operator usage --json",
    ),
  ).action(
    asOperator(async ({ client, call, output }, tenant: string | undefined, { limit }: LimitOption) => {
      const listed = await collectPages(limit, async (page) => {
        const { tenants, nextPageToken } = await client.listTenantUsage(
          { tenant: tenant ?? "", ...page },
          call,
        );
        return { items: tenants, nextPageToken };
      });
      output.list(TenantUsageSchema, listed, COLUMNS);
    }),
  );
}

function ofQuota(used: bigint | undefined, quota: bigint | undefined): string {
  if (used === undefined) return "not counted";
  return quota === undefined ? `${used}` : `${used} of ${quota}`;
}
