import { type Duration, durationFromMs, durationMs } from "@bufbuild/protobuf/wkt";
import { formatBytes } from "@onceward/decode/bytes.ts";
import { formatDurationMs } from "@onceward/decode/durations.ts";
import { type Policy, Policy_LateKeys, Policy_OnLeaseExpiry } from "@onceward/gen/onceward/v1/policy_pb.ts";
import { formatExactly, parseDuration } from "../format/duration.ts";
import { formatCount, formatSize, parseSize } from "../format/quantity.ts";

/** A field of a policy, as messages name it. */
export type PolicyField = keyof PolicyText;

/** Each field as a person types it, in the forms of the command line; empty: not set, so inherited. */
export interface PolicyText {
  readonly keyRetention: string;
  readonly resultRetention: string;
  readonly failureRetention: string;
  readonly defaultLease: string;
  readonly maxLease: string;
  readonly onLeaseExpiry: string;
  readonly maxResultBytes: string;
  readonly lateKeys: string;
  readonly requireFingerprint: string;
  readonly providerLink: string;
}

/** How a field is shown and typed. */
export interface FieldInfo {
  /** The name in an update mask, below "policy." */
  readonly path: string;
  readonly label: string;
  readonly help: string;
  /** Undefined: the value is typed; else each value with its words. */
  readonly choices?: Readonly<Record<string, string>>;
}

/** Every field of a policy, in the order of the screens. The ranges are the contract's (policy.proto). */
export const POLICY_FIELDS: Readonly<Record<PolicyField, FieldInfo>> = {
  keyRetention: {
    path: "key_retention",
    label: "Key retention",
    help: "How long a key is remembered: 1m to 400d.",
  },
  resultRetention: {
    path: "result_retention",
    label: "Result retention",
    help: "How long a success is replayed: at most the key retention.",
  },
  failureRetention: {
    path: "failure_retention",
    label: "Failure retention",
    help: "How long a failure is replayed: at most the key retention.",
  },
  defaultLease: {
    path: "default_lease",
    label: "Default lease",
    help: "The lease of a claim that asks for none: 1s to 24h.",
  },
  maxLease: { path: "max_lease", label: "Longest lease", help: "What a claim may ask for: 1s to 24h." },
  onLeaseExpiry: {
    path: "on_lease_expiry",
    label: "When a lease expires",
    help: "Reclaim: the next claim gets the key. Hold: a person decides.",
    choices: { reclaim: "Reclaim", hold: "Hold" },
  },
  maxResultBytes: {
    path: "max_result_bytes",
    label: "Largest result",
    help: "Of a result's payload: at most 1MiB.",
  },
  lateKeys: {
    path: "late_keys",
    label: "Keys that are too old",
    help: "A key older than the key retention has no record left, so it may have run before. Without a time, a key's age is unknown.",
    choices: { run: "Run", refuse: "Refuse", "require-time": "Refuse, also without a time" },
  },
  requireFingerprint: {
    path: "require_fingerprint",
    label: "Fingerprint",
    help: "Whether a claim without one is refused.",
    choices: { true: "Required", false: "Not required" },
  },
  providerLink: {
    path: "provider_link",
    label: "Link to the provider",
    help: "Where a person looks up whether an effect happened: https, with {key} and perhaps {owner}, such as https://pay.example/search?q={key}.",
  },
};

/** The names of all fields, in the order of the screens. */
export const FIELD_NAMES = Object.keys(POLICY_FIELDS) as readonly PolicyField[];

/** The fields whose change concerns records that exist, of which the review shows what becomes of them. */
export const RETENTION_FIELDS: ReadonlySet<PolicyField> = new Set([
  "keyRetention",
  "resultRetention",
  "failureRetention",
]);

/** What a tenant inherits: the service's defaults, as the contract names them (policy.proto). */
export const SERVICE_DEFAULTS: PolicyText = {
  keyRetention: "72h",
  resultRetention: "",
  failureRetention: "",
  defaultLease: "30s",
  maxLease: "15m",
  onLeaseExpiry: "reclaim",
  maxResultBytes: "64KiB",
  lateKeys: "run",
  requireFingerprint: "false",
  providerLink: "",
};

/** The words of the form for each choice about late keys, as the command line has them. */
const LATE_KEYS: ReadonlyMap<string, Policy_LateKeys> = new Map([
  ["run", Policy_LateKeys.RUN],
  ["refuse", Policy_LateKeys.REFUSE],
  ["require-time", Policy_LateKeys.REQUIRE_TIME],
]);

const KIB = 1_024;
/** The contract's limit (policy.proto). */
const MAX_RESULT_BYTES = 1_024 * KIB;

/** Returns the fields that a policy sets, as a person types them. */
export function policyText(policy: Policy | undefined): PolicyText {
  const expiry = policy?.onLeaseExpiry;
  return {
    keyRetention: durationTextOf(policy?.keyRetention),
    resultRetention: durationTextOf(policy?.resultRetention),
    failureRetention: durationTextOf(policy?.failureRetention),
    defaultLease: durationTextOf(policy?.defaultLease),
    maxLease: durationTextOf(policy?.maxLease),
    onLeaseExpiry:
      expiry === Policy_OnLeaseExpiry.HOLD
        ? "hold"
        : expiry === Policy_OnLeaseExpiry.RECLAIM
          ? "reclaim"
          : "",
    maxResultBytes: policy?.maxResultBytes === undefined ? "" : formatBytes(policy.maxResultBytes),
    lateKeys: [...LATE_KEYS].find(([, value]) => value === policy?.lateKeys)?.[0] ?? "",
    requireFingerprint: policy?.requireFingerprint === undefined ? "" : String(policy.requireFingerprint),
    providerLink: policy?.providerLink ?? "",
  };
}

/** Some fields of a policy, as a request sends them. */
export type PolicyInit = Partial<Omit<Policy, "$typeName" | "$unknown">>;

/** Returns the value of a typed field for a request, empty for an inherited one; undefined: it can't be read. */
export function parseField(field: PolicyField, text: string): PolicyInit | undefined {
  const value = text.trim();
  if (value === "") return {};
  switch (field) {
    case "onLeaseExpiry":
      return {
        onLeaseExpiry: value === "hold" ? Policy_OnLeaseExpiry.HOLD : Policy_OnLeaseExpiry.RECLAIM,
      };
    case "lateKeys":
      return { lateKeys: LATE_KEYS.get(value) ?? Policy_LateKeys.RUN };
    case "requireFingerprint":
      return { requireFingerprint: value === "true" };
    case "providerLink":
      return { providerLink: value };
    case "maxResultBytes": {
      const bytes = parseSize(value);
      return bytes === undefined || bytes > MAX_RESULT_BYTES ? undefined : { maxResultBytes: bytes };
    }
    case "keyRetention":
    case "resultRetention":
    case "failureRetention":
    case "defaultLease":
    case "maxLease": {
      const ms = parseDuration(value);
      return ms === undefined ? undefined : { [field]: durationFromMs(ms) };
    }
    default:
      return field satisfies never;
  }
}

/** Returns what to type instead of a text that `parseField` does not read. */
export function fieldProblem(field: PolicyField): string {
  return field === "maxResultBytes"
    ? "A whole number of bytes, such as 65536 or 64KiB, at most 1MiB."
    : "A whole number with a unit, such as 90s, 15m, 72h or 30d.";
}

/** Returns a field's text in the one form that `policyText` has; a text that can't be read stays as it is. */
export function canonicalText(field: PolicyField, text: string): string {
  const trimmed = text.trim();
  if (field === "maxResultBytes") {
    const bytes = parseSize(trimmed);
    return bytes === undefined ? trimmed : formatBytes(bytes);
  }
  if (POLICY_FIELDS[field].choices !== undefined || field === "providerLink") return trimmed;
  const ms = parseDuration(trimmed);
  return ms === undefined ? trimmed : formatDurationMs(ms);
}

/** Returns a field's text in words, such as "3 d" or "Required". */
export function fieldWords(field: PolicyField, text: string): string {
  if (text === "") return "inherited";
  const words = POLICY_FIELDS[field].choices?.[text];
  if (words !== undefined) return words;
  if (field === "providerLink") return text;
  if (field !== "maxResultBytes") {
    const ms = parseDuration(text);
    return ms === undefined ? text : formatExactly(ms);
  }
  const bytes = parseSize(text);
  if (bytes === undefined) return text;
  return bytes % KIB === 0 ? formatSize(bytes).replace(/\.0+ /, " ") : `${formatCount(bytes)} B`;
}

function durationTextOf(duration: Duration | undefined): string {
  return duration === undefined ? "" : formatDurationMs(durationMs(duration));
}
