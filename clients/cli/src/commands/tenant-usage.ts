import { ListTenantUsageRequest_Order, type TenantUsage, TenantUsageSchema } from "@onceward/client/proto";
import type { Command } from "commander";
import { choiceOption } from "../choices.ts";
import { createOperator } from "../clients.ts";
import type { Host } from "../host.ts";
import type { Column, OrderBy } from "../output.ts";
import { collectPages } from "../pages.ts";
import { describeRefused } from "../refused-text.ts";
import { sessions } from "../session.ts";
import { Moment } from "../times.ts";
import { command, type LimitOption, withAllCells, withLimit } from "./group.ts";

interface UsageOptions extends LimitOption {
  readonly sort?: ListTenantUsageRequest_Order;
  readonly search?: string;
}

const ORDERS = {
  name: ListTenantUsageRequest_Order.UNSPECIFIED,
  rate: ListTenantUsageRequest_Order.RATE,
  refused: ListTenantUsageRequest_Order.REFUSED,
  usage: ListTenantUsageRequest_Order.USAGE,
};

const COLUMNS: readonly Column<TenantUsage>[] = [
  ["TENANT", ({ tenant }) => tenant],
  ["CLAIMS/S", ({ now }) => (now?.claimsPerSecond ?? 0).toFixed(1)],
  ["REFUSED/S", ({ now }) => (now?.refusedPerSecond ?? 0).toFixed(1)],
  ["RECENT CLAIMS", ({ recentClaims }) => `${recentClaims}`, "wide"],
  ["REFUSED", ({ recentRefused }) => `${recentRefused}`],
  ["SINCE", ({ recentSince }) => new Moment(recentSince), "wide"],
  ["LIVE RECORDS", ({ liveRecords, quotas }) => ofQuota(liveRecords, quotas?.liveRecords)],
  ["STORED BYTES", ({ storedBytes, quotas }) => ofQuota(storedBytes, quotas?.storedBytes)],
  ["NAMESPACES", ({ declaredNamespaces }) => `${declaredNamespaces}`, "wide"],
  ["JOBS", ({ unfinishedRecordJobs }) => `${unfinishedRecordJobs}`, "wide"],
];

const ORDER_BY: Readonly<Record<ListTenantUsageRequest_Order, OrderBy<TenantUsage>>> = {
  [ListTenantUsageRequest_Order.UNSPECIFIED]: ({ tenant }) => tenant,
  [ListTenantUsageRequest_Order.RATE]: ({ now }) => now?.claimsPerSecond ?? 0,
  [ListTenantUsageRequest_Order.REFUSED]: ({ recentRefused }) => Number(recentRefused),
  [ListTenantUsageRequest_Order.USAGE]: ({ recentClaims }) => Number(recentClaims),
};

/** Returns `operator usage`. */
export function tenantUsageCommand(host: Host): Command {
  const asOperator = sessions(host, createOperator);
  return withAllCells(
    withLimit(
      command(
        "usage [tenant]",
        "Lists tenants, or one of them, with their use beside their quotas. Records and bytes are counted only while a quota for them is set.",
        "operator usage",
        "operator usage acme",
        "operator usage --sort rate --limit 10",
        "operator usage --all-cells --sort refused --json",
      ),
    ),
  )
    .addOption(choiceOption("--sort <order>", "the most first, by this; default: by name", ORDERS))
    .option("--search <text>", "only tenants whose names contain this")
    .action(
      asOperator(async ({ client, call, output }, tenant: string | undefined, options: UsageOptions) => {
        const { limit, sort = ListTenantUsageRequest_Order.UNSPECIFIED, search = "" } = options;
        const listed = await collectPages(limit, "tenants", (page) =>
          client.listTenantUsage({ tenant: tenant ?? "", order: sort, search, ...page }, call),
        );
        output.list(TenantUsageSchema, listed, COLUMNS, ORDER_BY[sort]);
        for (const { refused } of listed.items) output.text(describeRefused(refused));
      }),
    );
}

function ofQuota(used: bigint | undefined, quota: bigint | undefined): string {
  if (used === undefined) return "not counted";
  return quota === undefined ? `${used}` : `${used} of ${quota}`;
}
