import type { Duration } from "@bufbuild/protobuf/wkt";
import { type Policy, Policy_LateKeys, Policy_OnLeaseExpiry } from "@onceward/client/admin";
import { checkInt32, type Field, parseByteCount, parseFlag, unsetBy } from "./arguments.ts";
import { choiceParser, choicesOf } from "./choices.ts";
import { enumName } from "./output.ts";
import { formatDuration, parseDuration } from "./times.ts";

/** Some fields of a policy. */
export type PolicyInit = Partial<Omit<Policy, "$typeName" | "$unknown">>;

/** The word that unsets a field of a policy: the tenant's policy applies, or the service's. */
const INHERIT = "inherit";

type DurationName = "keyRetention" | "resultRetention" | "failureRetention" | "defaultLease" | "maxLease";

function durationField(
  name: DurationName,
  path: string,
  flags: string,
  description: string,
): Field<PolicyInit> {
  const parse = unsetBy(INHERIT, (text): PolicyInit => ({ [name]: parseDuration(text) }));
  return { flags, path, parse, description: `${description}, or "${INHERIT}"` };
}

const parseOnLeaseExpiry = choiceParser(choicesOf(Policy_OnLeaseExpiry));
const parseLateKeys = choiceParser(choicesOf(Policy_LateKeys));
const KEY = ["keyRetention", "key_retention"] as const;
const RESULT = ["resultRetention", "result_retention"] as const;
const FAILURE = ["failureRetention", "failure_retention"] as const;
const KEY_TEXT = "how long a key is remembered, 60s to 400d";
const RESULT_TEXT = "how long a success can be replayed, 60s to the key retention";
const FAILURE_TEXT = "how long a failure can be replayed, 60s to the key retention";

/** The options of `retention set`. */
export const RETENTION_FIELDS: readonly Field<PolicyInit>[] = [
  durationField(...KEY, "--key <duration>", KEY_TEXT),
  durationField(...RESULT, "--result <duration>", RESULT_TEXT),
  durationField(...FAILURE, "--failure <duration>", FAILURE_TEXT),
];

/** An option for every field of a policy. */
export const POLICY_FIELDS: readonly Field<PolicyInit>[] = [
  durationField(...KEY, "--key-retention <duration>", KEY_TEXT),
  durationField(...RESULT, "--result-retention <duration>", RESULT_TEXT),
  durationField(...FAILURE, "--failure-retention <duration>", FAILURE_TEXT),
  durationField(
    "defaultLease",
    "default_lease",
    "--default-lease <duration>",
    "the lease of claims that ask for none, 1s to the longest lease",
  ),
  durationField("maxLease", "max_lease", "--max-lease <duration>", "the longest lease, 1s to 24h"),
  {
    flags: "--on-lease-expiry <reclaim|hold>",
    path: "on_lease_expiry",
    description: `"reclaim": the next claim gets the key; "hold": the record is ambiguous; or "${INHERIT}"`,
    parse: unsetBy(INHERIT, (text) => ({
      onLeaseExpiry: parseOnLeaseExpiry(text),
    })),
  },
  {
    flags: "--max-result-bytes <bytes>",
    path: "max_result_bytes",
    description: `the largest result, 1 to 1MiB, or "${INHERIT}"`,
    parse: unsetBy(INHERIT, (text) => ({ maxResultBytes: checkInt32(parseByteCount(text)) })),
  },
  {
    flags: "--late-keys <run|refuse|require-time>",
    path: "late_keys",
    description: `what a key that is older than the key retention does: "run": it runs as a new operation; "refuse": it is refused; "require-time": so is a key whose time is unknown; or "${INHERIT}"`,
    parse: unsetBy(INHERIT, (text) => ({ lateKeys: parseLateKeys(text) })),
  },
  {
    flags: "--provider-link <url>",
    path: "provider_link",
    description: `where a person looks up whether an effect happened, such as "https://pay.example/search?q={key}", with {key} and {owner}; or "${INHERIT}"`,
    parse: unsetBy(INHERIT, (text) => ({ providerLink: text })),
  },
  {
    flags: "--require-fingerprint <true|false>",
    path: "require_fingerprint",
    description: `"true", "false" or "${INHERIT}"`,
    parse: unsetBy(INHERIT, (text) => ({
      requireFingerprint: parseFlag(text),
    })),
  },
];

/** Returns a policy's fields as text for people; "-" for a field that is not set. */
export function policyRows(policy: Policy | undefined): readonly (readonly [label: string, value: string])[] {
  const duration = (value: Duration | undefined) => formatDuration(value);
  return [
    ["key retention", duration(policy?.keyRetention)],
    ["result retention", duration(policy?.resultRetention)],
    ["failure retention", duration(policy?.failureRetention)],
    ["default lease", duration(policy?.defaultLease)],
    ["max lease", duration(policy?.maxLease)],
    ["on lease expiry", policy?.onLeaseExpiry ? enumName(Policy_OnLeaseExpiry, policy.onLeaseExpiry) : "-"],
    ["max result bytes", `${policy?.maxResultBytes ?? "-"}`],
    ["late keys", policy?.lateKeys ? enumName(Policy_LateKeys, policy.lateKeys) : "-"],
    ["require fingerprint", `${policy?.requireFingerprint ?? "-"}`],
    ["provider link", policy?.providerLink || "-"],
  ];
}
