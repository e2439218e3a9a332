import type { PolicyBounds, Quotas } from "@onceward/client/admin";
import { checkInt32, type Field, parseByteCount, parseCount, parseFlag, unsetBy } from "./arguments.ts";
import { parseDuration } from "./times.ts";

export type BoundsInit = Partial<Omit<PolicyBounds, "$typeName" | "$unknown">>;
export type QuotasInit = Partial<Omit<Quotas, "$typeName" | "$unknown">>;

/** The word that unsets a limit, so that only the contract's limits apply. */
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
  const parse = unsetBy(NONE, (text): QuotasInit => ({ [name]: checkInt32(parseCount(text)) }));
  return { flags, path, parse, description: `${description}, or "${NONE}"` };
}

function bigintQuota(
  name: "liveRecords" | "storedBytes",
  parseNumber: (text: string) => number,
  path: string,
  flags: string,
  description: string,
): Field<QuotasInit> {
  const parse = unsetBy(NONE, (text): QuotasInit => ({ [name]: BigInt(parseNumber(text)) }));
  return { flags, path, parse, description: `${description}, or "${NONE}"` };
}

/** The options for the bounds of a tenant's policies. */
export const BOUNDS_FIELDS: readonly Field<BoundsInit>[] = [
  durationBound(
    "minKeyRetention",
    "min_key_retention",
    "--min-key-retention <duration>",
    "the shortest key retention it may set, 60s to 400d",
  ),
  durationBound(
    "maxKeyRetention",
    "max_key_retention",
    "--max-key-retention <duration>",
    "the longest key retention it may set, 60s to 400d",
  ),
  durationBound("maxLease", "max_lease", "--max-lease <duration>", "the longest lease it may set, 1s to 24h"),
  {
    flags: "--max-result-bytes <bytes>",
    path: "max_result_bytes",
    description: `the largest result it may set, 1 to 1MiB, or "${NONE}"`,
    parse: unsetBy(NONE, (text) => ({ maxResultBytes: checkInt32(parseByteCount(text)) })),
  },
];

/** The options for a tenant's quotas. */
export const QUOTA_FIELDS: readonly Field<QuotasInit>[] = [
  quota(
    "operationsPerSecond",
    "operations_per_second",
    "--operations-per-second <count>",
    "operations per second, over all replicas",
  ),
  quota("burst", "burst", "--burst <count>", "operations at once, on top of the rate"),
  quota(
    "concurrentCalls",
    "concurrent_calls",
    "--concurrent-calls <count>",
    "calls in flight on each replica",
  ),
  bigintQuota("liveRecords", parseCount, "live_records", "--live-records <count>", "records stored"),
  bigintQuota(
    "storedBytes",
    parseByteCount,
    "stored_bytes",
    "--stored-bytes <bytes>",
    "bytes of results and checkpoints, such as 5GiB",
  ),
  quota(
    "declaredNamespaces",
    "declared_namespaces",
    "--declared-namespaces <count>",
    "namespaces with a policy of their own; 1000 unless set",
  ),
  quota("weight", "weight", "--weight <count>", "its share where calls queue, 1-100"),
  {
    flags: "--quota-dry-run <true|false>",
    path: "dry_run",
    description: '"true": only count what would be refused',
    parse: (text) => ({ dryRun: parseFlag(text) }),
  },
];
