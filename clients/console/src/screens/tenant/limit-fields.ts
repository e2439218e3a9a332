import type { Tenant } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { createDrafts, type FieldTexts, type FormField } from "../../form/draft.ts";
import {
  bigKind,
  bytesKind,
  choiceKind,
  countKind,
  DURATION,
  type FieldKind,
  maskName,
} from "../../form/field-kinds.ts";
import { formatCount } from "../../format/quantity.ts";

/** A limit that the operator sets. */
export interface LimitField extends FormField {
  /** The name in an update mask. */
  readonly path: string;
  readonly group: "policyBounds" | "quotas";
  readonly name: string;
}

const BYTES_EXAMPLE = "A whole number of bytes, such as 65536, 64KiB or 5GiB.";
/** The largest value of a field that is not a bigint. */
const MAX_INT32 = 2 ** 31 - 1;
const COUNT = countKind(MAX_INT32);
const BIG_COUNT = bigKind(countKind(Number.MAX_SAFE_INTEGER));
const BIG_BYTES = bigKind(bytesKind(Number.MAX_SAFE_INTEGER, BYTES_EXAMPLE));
const BYTES = bytesKind(MAX_INT32, BYTES_EXAMPLE);
/** Whether a mode is on; not set is off. */
export const FLAG = choiceKind({ true: true });

/** Every limit, in the order of the form. Ranges and defaults are the contract's (policy.proto). */
export const LIMIT_FIELDS: readonly LimitField[] = [
  quota("operationsPerSecond", COUNT, "Operations a second", "On all replicas together."),
  quota("burst", COUNT, "Burst", "Operations at once above the rate. Unset: those of one second."),
  quota("concurrentCalls", COUNT, "Calls at once", "On each replica, waiting ones too."),
  quota("liveRecords", BIG_COUNT, "Stored records", "Counted while it is set."),
  quota("storedBytes", BIG_BYTES, "Stored bytes", "Results and checkpoints, such as 5GiB."),
  quota("declaredNamespaces", COUNT, "Declared namespaces", "1 to 10,000. Unset: 1,000."),
  quota("weight", COUNT, "Weight", "The share where calls of tenants queue, 1 to 100. Unset: 1."),
  quota("dryRun", FLAG, "Mode", "Enforce refuses calls beyond a quota; Count only counts them."),
  bound("minKeyRetention", DURATION, "Shortest key retention", "At least 1m."),
  bound("maxKeyRetention", DURATION, "Longest key retention", "At most 400d."),
  bound("maxLease", DURATION, "Longest lease", "At most 24h."),
  bound("maxResultBytes", BYTES, "Largest result", "At most 1MiB."),
];

function quota<Value>(name: string, kind: FieldKind<Value>, label: string, help: string): LimitField {
  return {
    ...{ group: "quotas", name, path: `quotas.${maskName(name)}`, label, help },
    kind: kind as FieldKind,
  };
}

function bound<Value>(name: string, kind: FieldKind<Value>, label: string, help: string): LimitField {
  return {
    ...quota(name, kind, label, help),
    group: "policyBounds",
    path: `policy_bounds.${maskName(name)}`,
  };
}

/** Limits as a person types them, by path; empty: not set. A flag is "true" or empty. */
export type LimitTexts = FieldTexts<string>;

/** The drafts of a tenant's limits. */
export const LIMIT_DRAFTS = createDrafts<string>(
  Object.fromEntries(LIMIT_FIELDS.map((field) => [field.path, field])),
);

/** Returns a tenant's limits as a person types them. */
export function limitTexts(tenant: Pick<Tenant, "policyBounds" | "quotas">): LimitTexts {
  const values = LIMIT_FIELDS.map(({ group, name, path }) => {
    return [path, (tenant[group] as Readonly<Record<string, unknown>> | undefined)?.[name]] as const;
  });
  const byPath = new Map(values);
  return LIMIT_DRAFTS.textsOf((path) => byPath.get(path));
}

/** Reads the fields of `paths` for a request: some fields of PolicyBounds and Quotas, by their names. */
export function parseLimits(texts: LimitTexts, paths: readonly string[]) {
  const { values, problems } = LIMIT_DRAFTS.read(texts, paths);
  const given = LIMIT_FIELDS.filter(({ path }) => path in values);
  const ofGroup = (group: LimitField["group"]) =>
    Object.fromEntries(
      given.flatMap((field) => (field.group === group ? [[field.name, values[field.path]]] : [])),
    );
  return { policyBounds: ofGroup("policyBounds"), quotas: ofGroup("quotas"), problems };
}

/** Returns a limit as a person reads it, such as "10,000" or "Count only". */
export function limitWords(path: string, text = ""): string {
  const trimmed = text.trim();
  if (LIMIT_DRAFTS.fields[path]?.kind === FLAG) return trimmed === "true" ? "Count only" : "Enforce";
  if (trimmed === "") return "not set";
  return /^\d{1,15}$/.test(trimmed) ? formatCount(Number(trimmed)) : trimmed;
}
