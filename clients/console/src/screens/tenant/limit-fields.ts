import { durationFromMs, durationMs } from "@bufbuild/protobuf/wkt";
import { formatBytes } from "@onceward/decode/bytes.ts";
import { formatDurationMs } from "@onceward/decode/durations.ts";
import type { Tenant } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { createDrafts, type FieldTexts } from "../../form/draft.ts";
import { parseDuration } from "../../format/duration.ts";
import { formatCount, parseSize } from "../../format/quantity.ts";

/** A limit that the operator sets. */
export interface LimitField {
  /** The name in an update mask. */
  readonly path: string;
  readonly group: "policyBounds" | "quotas";
  readonly name: string;
  readonly label: string;
  readonly help: string;
  readonly kind: "duration" | "bytes" | "count" | "flag";
  /** Whether the message has a bigint. */
  readonly isBig?: boolean;
}

/** Every limit, in the order of the form. Ranges and defaults are the contract's (policy.proto). */
export const LIMIT_FIELDS = [
  quota("operationsPerSecond", "operations_per_second", "Operations a second", "On all replicas together."),
  quota("burst", "burst", "Burst", "Operations at once above the rate. Unset: those of one second."),
  quota("concurrentCalls", "concurrent_calls", "Calls at once", "On each replica, waiting ones too."),
  { ...quota("liveRecords", "live_records", "Stored records", "Counted while it is set."), isBig: true },
  {
    ...quota("storedBytes", "stored_bytes", "Stored bytes", "Results and checkpoints, such as 5GiB."),
    kind: "bytes",
    isBig: true,
  },
  quota("declaredNamespaces", "declared_namespaces", "Declared namespaces", "1 to 10,000. Unset: 1,000."),
  quota("weight", "weight", "Weight", "The share where calls of tenants queue, 1 to 100. Unset: 1."),
  {
    ...quota("dryRun", "dry_run", "Mode", "Enforce refuses calls beyond a quota; Count only counts them."),
    kind: "flag",
  },
  bound("minKeyRetention", "min_key_retention", "Shortest key retention", "At least 1m."),
  bound("maxKeyRetention", "max_key_retention", "Longest key retention", "At most 400d."),
  bound("maxLease", "max_lease", "Longest lease", "At most 24h."),
  { ...bound("maxResultBytes", "max_result_bytes", "Largest result", "At most 1MiB."), kind: "bytes" },
] as const satisfies readonly LimitField[];

function quota(name: string, path: string, label: string, help: string) {
  return { group: "quotas", name, path: `quotas.${path}`, label, help, kind: "count" } as const;
}

function bound(name: string, path: string, label: string, help: string) {
  return {
    group: "policyBounds",
    name,
    path: `policy_bounds.${path}`,
    label,
    help,
    kind: "duration",
  } as const;
}

/** Limits as a person types them, by path; empty: not set. A flag is "true" or empty. */
export type LimitTexts = FieldTexts<string>;

/** Returns a tenant's limits as a person types them. */
export function limitTexts(tenant: Pick<Tenant, "policyBounds" | "quotas">): LimitTexts {
  return Object.fromEntries(
    LIMIT_FIELDS.map((field: LimitField) => {
      const group = tenant[field.group] as Readonly<Record<string, unknown>> | undefined;
      return [field.path, textOf(field, group?.[field.name])];
    }),
  );
}

function textOf({ kind }: LimitField, value: unknown): string {
  if (value === undefined || value === false) return "";
  if (kind === "duration") return formatDurationMs(durationMs(value as Parameters<typeof durationMs>[0]));
  return kind === "bytes" ? formatBytes(Number(value)) : String(value);
}

/** Limits for a request: some fields of PolicyBounds and Quotas, by their names. */
export interface ParsedLimits {
  readonly policyBounds: Readonly<Record<string, unknown>>;
  readonly quotas: Readonly<Record<string, unknown>>;
  /** Paths of fields that can't be read, with what to type. */
  readonly problems: Readonly<Record<string, string>>;
}

/** Reads the fields of `paths`; an empty text unsets its field. */
export function parseLimits(texts: LimitTexts, paths: readonly string[]): ParsedLimits {
  const groups = { policyBounds: {} as Record<string, unknown>, quotas: {} as Record<string, unknown> };
  const problems: Record<string, string> = {};
  for (const field of LIMIT_FIELDS as readonly LimitField[]) {
    const text = texts[field.path]?.trim() ?? "";
    if (!paths.includes(field.path) || text === "") continue;
    const value = parseLimit(field, text);
    if (value === undefined) problems[field.path] = EXAMPLES[field.kind];
    else groups[field.group][field.name] = value;
  }
  return { ...groups, problems };
}

const EXAMPLES: Readonly<Record<LimitField["kind"], string>> = {
  duration: "A whole number with a unit, such as 90s, 15m, 72h or 30d.",
  bytes: "A whole number of bytes, such as 65536, 64KiB or 5GiB.",
  count: "A whole number, such as 500.",
  flag: "true, or empty.",
};

/** The largest value of a field that is not a bigint. */
const MAX_INT32 = 2 ** 31 - 1;

function parseLimit({ kind, isBig }: LimitField, text: string): unknown {
  if (kind === "flag") return text === "true";
  if (kind === "duration") {
    const ms = parseDuration(text);
    return ms === undefined ? undefined : durationFromMs(ms);
  }
  const value = kind === "bytes" ? parseSize(text) : parseCount(text);
  if (value === undefined) return undefined;
  if (isBig === true) return BigInt(value);
  return value > MAX_INT32 ? undefined : value;
}

/** The drafts of a tenant's limits. */
export const LIMIT_DRAFTS = createDrafts<string>(
  LIMIT_FIELDS.map(({ path }) => path),
  (path, text) => canonical(LIMIT_FIELDS.find((field) => field.path === path)?.kind ?? "flag", text),
);

/** Returns a text in the one form that `limitTexts` has; a text that can't be read stays as it is. */
function canonical(kind: LimitField["kind"], text: string): string {
  const trimmed = text.trim();
  const ms = kind === "duration" ? parseDuration(trimmed) : undefined;
  if (ms !== undefined) return formatDurationMs(ms);
  const bytes = kind === "bytes" ? parseSize(trimmed) : undefined;
  if (bytes !== undefined) return formatBytes(bytes);
  const count = kind === "count" ? parseCount(trimmed) : undefined;
  return count === undefined ? trimmed : String(count);
}

/** Returns a limit as a person reads it, such as "10,000" or "Count only". */
export function limitWords(path: string, text = ""): string {
  const trimmed = text.trim();
  if (LIMIT_FIELDS.find((field) => field.path === path)?.kind === "flag")
    return trimmed === "true" ? "Count only" : "Enforce";
  if (trimmed === "") return "not set";
  return /^\d{1,15}$/.test(trimmed) ? formatCount(Number(trimmed)) : trimmed;
}

/** As the command line: digits, also with separators as the console shows them. */
function parseCount(text: string): number | undefined {
  const digits = text.replaceAll(",", "");
  const count = /^\d{1,16}$/.test(digits) ? Number(digits) : undefined;
  return count === undefined || !Number.isSafeInteger(count) ? undefined : count;
}
