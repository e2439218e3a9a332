import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  type Policy,
  Policy_LateKeys,
  Policy_OnLeaseExpiry,
  type PolicySchema,
} from "@onceward/gen/onceward/v1/policy_pb.ts";
import type { RetentionEffect } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { createDrafts, type Draft, type FieldTexts, type FormField, type SavedTexts } from "../form/draft.ts";
import { bytesKind, choiceKind, DURATION, type FieldKind, maskName, TEXT } from "../form/field-kinds.ts";
import { formatExactly, parseDuration } from "../format/duration.ts";
import { formatCount, formatSize, parseSize } from "../format/quantity.ts";

/** A field of a policy, as messages name it. */
export type PolicyField = Exclude<keyof Policy, "$typeName" | "$unknown">;

/** Each field as a person types it, in the forms of the command line; empty: not set, so inherited. */
export type PolicyText = FieldTexts<PolicyField>;

/** How a field is shown and typed. */
interface FieldInfo extends FormField {
  /** Undefined: the value is typed; else each value with its words. */
  readonly choices?: Readonly<Record<string, string>>;
}

const KIB = 1_024;
/** The contract's limit (policy.proto). */
const RESULT_BYTES = bytesKind(1_024 * KIB, "A whole number of bytes, such as 65536 or 64KiB, at most 1MiB.");
const { RECLAIM, HOLD } = Policy_OnLeaseExpiry;
const { RUN, REFUSE, REQUIRE_TIME } = Policy_LateKeys;

/** Every field of a policy, in the order of the screens. The ranges are the contract's (policy.proto). */
export const POLICY_FIELDS: Readonly<Record<PolicyField, FieldInfo>> = {
  keyRetention: typed(DURATION, "Key retention", "How long a key is remembered: 1m to 400d."),
  resultRetention: typed(
    DURATION,
    "Result retention",
    "How long a success is replayed: 1m to the key retention.",
  ),
  failureRetention: typed(
    DURATION,
    "Failure retention",
    "How long a failure is replayed: 1m to the key retention.",
  ),
  defaultLease: typed(
    DURATION,
    "Default lease",
    "The lease of a claim that asks for none: 1s to the longest lease.",
  ),
  maxLease: typed(DURATION, "Longest lease", "What a claim may ask for: 1s to 24h."),
  onLeaseExpiry: {
    label: "When a lease expires",
    help: "Reclaim: the next claim gets the key. Hold: a person decides.",
    kind: choiceKind({ reclaim: RECLAIM, hold: HOLD }),
    choices: { reclaim: "Reclaim", hold: "Hold" },
  },
  maxResultBytes: typed(
    RESULT_BYTES,
    "Largest result",
    "Of a result's payload and metadata: 1 byte to 1MiB.",
  ),
  lateKeys: {
    label: "Keys that are too old",
    help: "A key older than the key retention has no record left, so it may have run before. Without a time, a key's age is unknown.",
    kind: choiceKind({ run: RUN, refuse: REFUSE, "require-time": REQUIRE_TIME }),
    choices: { run: "Run", refuse: "Refuse", "require-time": "Refuse, also without a time" },
  },
  requireFingerprint: {
    label: "Fingerprint",
    help: "Whether a claim without one is refused.",
    kind: choiceKind({ true: true, false: false }),
    choices: { true: "Required", false: "Not required" },
  },
  providerLink: typed(
    TEXT,
    "Link to the provider",
    "Where a person looks up whether an effect happened: https, with {key} and perhaps {owner}, such as https://pay.example/search?q={key}.",
  ),
};

function typed<Value>(kind: FieldKind<Value>, label: string, help: string): FieldInfo {
  return { label, help, kind: kind as FieldKind };
}

/** The names of all fields, in the order of the screens. */
export const FIELD_NAMES = Object.keys(POLICY_FIELDS) as readonly PolicyField[];

/** The fields whose change concerns records that exist, of which the review shows what becomes of them. */
export const RETENTION_FIELDS = new Set<PolicyField>(["keyRetention", "resultRetention", "failureRetention"]);

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

/** The drafts of a policy. */
export const POLICY_DRAFTS = createDrafts<PolicyField>(POLICY_FIELDS);

/** Returns the fields that a policy sets, as a person types them. */
export function policyText(policy: Policy | undefined): PolicyText {
  return POLICY_DRAFTS.textsOf((field) => policy?.[field]);
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

/** A policy as the server keeps it. */
export type SavedPolicy = SavedTexts<PolicyField>;

/** A form over a saved policy. */
export type PolicyDraft = Draft<PolicyField>;

/** Reads the changed fields, for a request: the others may hold values that this version of the console does not know. */
export function readDraft(draft: PolicyDraft) {
  const fields = POLICY_DRAFTS.changed(draft);
  const { values, problems } = POLICY_DRAFTS.read(draft.typed, fields);
  const paths = fields.map((field) => `policy.${maskName(field)}`);
  return { policy: values as MessageInitShape<typeof PolicySchema>, paths, problems };
}

/** Returns the field that a refused path such as "namespace.policy.key_retention" names; undefined: another one. */
export function fieldOfPath(path: string): PolicyField | undefined {
  const last = path.slice(path.lastIndexOf(".") + 1);
  return FIELD_NAMES.find((field) => maskName(field) === last);
}

/** What a change does, or did. */
export interface PolicyOutcome {
  /** The values in force after it. */
  readonly inForce: PolicyText;
  /** What `applyToExisting` would do to stored records; set by `validateOnly`. */
  readonly effect: RetentionEffect | undefined;
  /** The job that changes stored records; undefined: none. */
  readonly jobId: bigint | undefined;
}

/** Returns the fields whose value in force changes. */
export function changedInForce(now: PolicyText, after: PolicyText): readonly PolicyField[] {
  return FIELD_NAMES.filter((field) => now[field] !== after[field]);
}
