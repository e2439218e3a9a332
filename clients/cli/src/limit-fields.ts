import type { PolicyBounds, Quotas } from "@onceward/client/admin";
import { parseDuration } from "./durations.ts";
import { type Field, unsetBy } from "./field-options.ts";
import { parseCount, parseFlag } from "./numbers.ts";

export type BoundsInit = Partial<Omit<PolicyBounds, "$typeName" | "$unknown">>;
export type QuotasInit = Partial<Omit<Quotas, "$typeName" | "$unknown">>;

/** Unsets a limit: nothing is limited beyond the contract. */
const NONE = "none";

function durationBound(
  name: "minKeyRetention" | "maxKeyRetention" | "maxLease",
  path: string,
  flags: string,
  description: string,
): Field<BoundsInit> {
  const parse = unsetBy(NONE, (text): BoundsInit => ({ [name]: parseDuration(text) }));
  return { flags, path, parse, description: `${description}, or "${NONE}"` };
}

function quota(
  name: "operationsPerSecond" | "burst" | "concurrentCalls" | "weight" | "declaredNamespaces",
  path: string,
  flags: string,
  description: string,
): Field<QuotasInit> {
  const parse = unsetBy(NONE, (text): QuotasInit => ({ [name]: parseCount(text) }));
  return { flags, path, parse, description: `${description}, or "${NONE}"` };
}

function wideQuota(
  name: "liveRecords" | "storedBytes",
  path: string,
  flags: string,
  description: string,
): Field<QuotasInit> {
  const parse = unsetBy(NONE, (text): QuotasInit => ({ [name]: BigInt(parseCount(text)) }));
  return { flags, path, parse, description: `${description}, or "${NONE}"` };
}

/** What a tenant may set in its policies. */
export const BOUNDS_FIELDS: readonly Field<BoundsInit>[] = [
  durationBound("minKeyRetention", "min_key_retention", "--min-key-retention <duration>", "at least this"),
  durationBound("maxKeyRetention", "max_key_retention", "--max-key-retention <duration>", "at most this"),
  durationBound("maxLease", "max_lease", "--max-lease <duration>", "the longest lease it may set"),
  {
    flags: "--max-result-bytes <count>",
    path: "max_result_bytes",
    description: `the largest result it may set, or "${NONE}"`,
    parse: unsetBy(NONE, (text) => ({ maxResultBytes: parseCount(text) })),
  },
];

/** How much of the service a tenant may use. */
export const QUOTA_FIELDS: readonly Field<QuotasInit>[] = [
  quota(
    "operationsPerSecond",
    "operations_per_second",
    "--operations-per-second <count>",
    "over all replicas",
  ),
  quota("burst", "burst", "--burst <count>", "operations at once, on top of the rate"),
  quota("concurrentCalls", "concurrent_calls", "--concurrent-calls <count>", "on each replica"),
  wideQuota("liveRecords", "live_records", "--live-records <count>", "records stored"),
  wideQuota("storedBytes", "stored_bytes", "--stored-bytes <count>", "bytes of results and checkpoints"),
  quota(
    "declaredNamespaces",
    "declared_namespaces",
    "--declared-namespaces <count>",
    "namespaces with a policy of their own; 1000 unless set",
  ),
  quota("weight", "weight", "--weight <count>", "its share where calls queue, 1-100"),
  {
    flags: "--quota-dry-run <flag>",
    path: "dry_run",
    description: '"true": only count what would be refused',
    parse: (text) => ({ dryRun: parseFlag(text) }),
  },
];
