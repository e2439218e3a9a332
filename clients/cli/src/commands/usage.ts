import type { Timestamp } from "@bufbuild/protobuf/wkt";
import {
  createTenantAdmin,
  GetUsageRequest_Grouping,
  type UsageHour,
  UsageHourSchema,
} from "@onceward/client/admin";
import type { Command } from "commander";
import type { Host } from "../host.ts";
import { describeLateness, sumLateness } from "../lateness.ts";
import { sessions } from "../session.ts";
import { formatMoment, parsePast } from "../times.ts";
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

type Counter =
  | "claims"
  | "granted"
  | "replayed"
  | "inProgress"
  | "ambiguous"
  | "mismatches"
  | "lateKeysRefused"
  | "reclaims"
  | "fenced"
  | "completions"
  | "swept";

/** Returns `onceward usage …`: claims by hour and namespace. */
export function usageCommands(host: Host): Command {
  const asAdmin = sessions(host, createTenantAdmin);
  return group("usage", "claims by hour and namespace", [
    withLimit(
      command(
        "show",
        "Shows claims by hour and namespace, and how late duplicates came, which retention has to cover.",
        "usage show",
        "usage show --namespace charges --after 7d",
        "usage show --by-hour",
      ),
      DEFAULT_HOURS,
    )
      .option("--namespace <name>", "only this namespace")
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
          const count = (heading: string, counter: Counter) =>
            [heading, (usage: UsageHour) => `${usage[counter]}`] as const;
          output.list(UsageHourSchema, listed, [
            ["HOUR", ({ hour }) => formatMoment(hour)],
            ["NAMESPACE", (usage) => usage.namespace || "all"],
            count("CLAIMS", "claims"),
            count("GRANTED", "granted"),
            count("REPLAYED", "replayed"),
            count("IN PROGRESS", "inProgress"),
            count("AMBIGUOUS", "ambiguous"),
            count("MISMATCHES", "mismatches"),
            count("TOO OLD", "lateKeysRefused"),
            count("RECLAIMS", "reclaims"),
            count("FENCED", "fenced"),
            count("COMPLETIONS", "completions"),
            count("SWEPT", "swept"),
          ]);
          if (output.isJson) return;
          for (const [name, buckets] of sumLateness(listed.items))
            host.write(describeLateness(name, buckets));
        }),
      ),
  ]);
}
