import { type Duration, durationMs, type Timestamp } from "@bufbuild/protobuf/wkt";
import {
  type GetUsageNowResponse,
  GetUsageNowResponseSchema,
  GetUsageRequest_Grouping,
  type UsageHour,
  UsageHourSchema,
  type UsageNow,
} from "@onceward/client/proto";
import type { Command } from "commander";
import { refusedCount } from "#words/refusals";
import { formatLatency } from "#words/words";
import { createTenantAdmin } from "../clients.ts";
import type { Host } from "../host.ts";
import { requireNamespace } from "../known-names.ts";
import { describeLateness, sumLateness } from "../lateness.ts";
import { describeRefused } from "../refused-text.ts";
import { sessions } from "../session.ts";
import { renderTable } from "../table.ts";
import { Moment, parsePast } from "../times.ts";
import { collectUsage } from "../usage-hours.ts";
import { command, group, type LimitOption, withLimit } from "./group.ts";

interface UsageOptions extends LimitOption {
  readonly namespace?: string;
  readonly after?: Timestamp;
  readonly before?: Timestamp;
  readonly byHour?: true;
}

/** More than a month of one namespace's hours. */
const DEFAULT_HOURS = 1000;

/** What quotas refused, by reason. */
const REFUSED = [
  ["OVER RATE", "refusedByRate"],
  ["OVER CALLS", "refusedByConcurrency"],
  ["OVER RECORDS", "refusedByRecords"],
  ["OVER BYTES", "refusedByBytes"],
  ["ONLY COUNTED", "wouldBeRefused"],
] as const;

type Counter =
  | "claims"
  | "granted"
  | "replayed"
  | "inProgress"
  | "ambiguous"
  | "mismatches"
  | "lateKeysRefused"
  | (typeof REFUSED)[number][1]
  | "reclaims"
  | "fenced"
  | "completions"
  | "settled"
  | "swept";

const NOW_COLUMNS: readonly (readonly [string, (now: UsageNow) => string])[] = [
  ["NAMESPACE", ({ namespace }) => namespace || "-"],
  ["CLAIMS/S", ({ claimsPerSecond }) => claimsPerSecond.toFixed(1)],
  ["DUPLICATES", ({ duplicates }) => `${duplicates}`],
  ["REFUSED", (now) => `${refusedCount(now)}`],
  ["p50", ({ medianLatency }) => latency(medianLatency)],
  ["p99", ({ p99Latency }) => latency(p99Latency)],
];

function latency(duration: Duration | undefined): string {
  return duration === undefined ? "-" : formatLatency(durationMs(duration));
}

function describeNow({ total, namespaces, refused }: GetUsageNowResponse, name: string): string {
  const rows = [...(total ? [{ ...total, namespace: name }] : []), ...namespaces];
  const table = renderTable(
    NOW_COLUMNS.map(([heading]) => heading),
    rows.map((row) => NOW_COLUMNS.map(([, cell]) => cell(row))),
  );
  return `${table}${describeRefused(refused)}`;
}

/** Returns `onceward usage …`: claims by hour and namespace. */
export function usageCommands(host: Host): Command {
  const asAdmin = sessions(host, createTenantAdmin);
  return group("usage", [
    withLimit(
      command(
        "show",
        "Shows claims by hour and namespace, and how late recognised duplicates came. Those after the end of their record are in onceward advice.",
        "usage show",
        "usage show --namespace charges --after 7d",
        "usage show --by-hour",
      ),
      DEFAULT_HOURS,
    )
      .option("-n, --namespace <name>", "only this namespace")
      .option("--after <time>", "from this hour on; default: 24 hours ago", parsePast)
      .option("--before <time>", "up to this time", parsePast)
      .option("--by-hour", "the sums of each hour, without how late duplicates came")
      .action(
        asAdmin(async ({ client, call, output }, options: UsageOptions) => {
          const { limit, namespace = "", after, before, byHour } = options;
          const filter = {
            namespace,
            ...(after && { after }),
            ...(before && { before }),
            ...(byHour && { grouping: GetUsageRequest_Grouping.HOUR }),
          };
          const listed = await collectUsage({ client, call }, filter, limit);
          const count = (heading: string, counter: Counter, fit?: "wide") =>
            [heading, (usage: UsageHour) => `${usage[counter]}`, fit] as const;
          const refused = (heading: string, counter: Counter) =>
            count(heading, counter, listed.items.some((usage) => usage[counter] > 0n) ? undefined : "wide");
          output.list(UsageHourSchema, listed, [
            ["HOUR", ({ hour }) => new Moment(hour)],
            ["NAMESPACE", (usage) => usage.namespace || (byHour ? "all" : "-")],
            count("CLAIMS", "claims"),
            count("GRANTED", "granted", "wide"),
            ["DUPLICATES", ({ replayed, inProgress }) => `${replayed + inProgress}`],
            count("REPLAYED", "replayed", "wide"),
            count("IN PROGRESS", "inProgress", "wide"),
            count("AMBIGUOUS", "ambiguous", "wide"),
            count("MISMATCHES", "mismatches"),
            refused("TOO OLD", "lateKeysRefused"),
            ...REFUSED.map(([heading, counter]) => refused(heading, counter)),
            count("RECLAIMS", "reclaims", "wide"),
            count("FENCED", "fenced", "wide"),
            count("COMPLETIONS", "completions", "wide"),
            count("SETTLED", "settled", "wide"),
            count("SWEPT", "swept", "wide"),
          ]);
          if (output.isJson) return;
          for (const [name, buckets] of sumLateness(listed.items))
            host.write(describeLateness(name, buckets));
        }),
      ),
    command(
      "now [namespace]",
      "Shows the last minute: claims a second, stopped duplicates, refused calls by API key with their cause and limit, and latency, of the tenant and its busiest namespaces.",
      "usage now",
      "usage now charges",
    ).action(
      asAdmin(async ({ client, call, output }, namespace: string | undefined, _options: object) => {
        const now = await client.getUsageNow({ namespace: namespace ?? "" }, call);
        if (namespace !== undefined && now.total?.claimsPerSecond === 0)
          await requireNamespace(client, call, namespace);
        output.message(GetUsageNowResponseSchema, now, () => describeNow(now, namespace ?? "all"));
      }),
    ),
  ]);
}
