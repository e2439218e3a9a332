import type { FieldTable, Overrides } from "./fields.ts";
import { describeLimitMs, MIN_LEASE_MS, MIN_RETENTION_S } from "./limits.ts";
import { POLICY_FIELDS, type Policy, type PolicyOverrides } from "./policy.ts";
import type { Violation } from "./refusal.ts";

/** The bounds of the policies that a tenant may set. */
export interface PolicyBounds {
  readonly minKeyRetentionS: number;
  readonly maxKeyRetentionS: number;
  readonly maxLeaseMs: number;
  readonly maxResultBytes: number;
}

const DAY_S = 86_400;

/** The bounds that the contract allows; an operator may narrow them for a tenant, and never widen them. */
export const WIDEST_BOUNDS: PolicyBounds = {
  minKeyRetentionS: MIN_RETENTION_S,
  // A year, and the month in which it is noticed.
  maxKeyRetentionS: 400 * DAY_S,
  maxLeaseMs: DAY_S * 1000,
  maxResultBytes: 1024 * 1024,
};

const KEY_RETENTION_S = { min: WIDEST_BOUNDS.minKeyRetentionS, max: WIDEST_BOUNDS.maxKeyRetentionS };

/** The fields of policy bounds: their names in messages, their columns, their kinds and ranges. */
export const BOUND_FIELDS = {
  minKeyRetentionS: {
    proto: "min_key_retention",
    column: "min_key_retention_s",
    kind: "seconds",
    range: KEY_RETENTION_S,
  },
  maxKeyRetentionS: {
    proto: "max_key_retention",
    column: "max_key_retention_s",
    kind: "seconds",
    range: KEY_RETENTION_S,
  },
  maxLeaseMs: {
    proto: "max_lease",
    column: "max_lease_bound_ms",
    kind: "milliseconds",
    range: { min: MIN_LEASE_MS, max: WIDEST_BOUNDS.maxLeaseMs },
  },
  maxResultBytes: {
    proto: "max_result_bytes",
    column: "max_result_bytes_bound",
    kind: "integer",
    range: { min: 1, max: WIDEST_BOUNDS.maxResultBytes },
  },
} as const satisfies FieldTable<PolicyBounds>;

/** The bounds that an operator narrowed; an unset one is the contract's. */
export type NarrowedBounds = Overrides<PolicyBounds>;

/** Returns the bounds of a tenant. */
export function boundsInForce(narrowed: NarrowedBounds): PolicyBounds {
  return {
    minKeyRetentionS: narrowed.minKeyRetentionS ?? WIDEST_BOUNDS.minKeyRetentionS,
    maxKeyRetentionS: narrowed.maxKeyRetentionS ?? WIDEST_BOUNDS.maxKeyRetentionS,
    maxLeaseMs: narrowed.maxLeaseMs ?? WIDEST_BOUNDS.maxLeaseMs,
    maxResultBytes: narrowed.maxResultBytes ?? WIDEST_BOUNDS.maxResultBytes,
  };
}

/** The fields of a policy that have a range: every number. */
type RangedField = {
  [Name in keyof Policy]: Policy[Name] extends number ? Name : never;
}[keyof Policy];

/**
 * Returns a violation for every field of a policy that is beyond the bounds or contradicts another field. Fields are named as
 * in `policy.proto`, behind `prefix`.
 */
export function policyViolations(
  policy: PolicyOverrides,
  bounds: PolicyBounds,
  prefix: string,
): readonly Violation[] {
  const { keyRetentionS, maxLeaseMs } = policy;
  const { minKeyRetentionS, maxKeyRetentionS } = bounds;
  // A result may expire sooner than any key may.
  const result = { min: MIN_RETENTION_S, max: keyRetentionS ?? maxKeyRetentionS, describe: describeLimitS };
  const lease = { min: MIN_LEASE_MS, max: bounds.maxLeaseMs, describe: describeLimitMs };
  const ranges: Readonly<Record<RangedField, Range>> = {
    keyRetentionS: { min: minKeyRetentionS, max: maxKeyRetentionS, describe: describeLimitS },
    resultRetentionS: result,
    failureRetentionS: result,
    defaultLeaseMs: { ...lease, max: maxLeaseMs ?? lease.max },
    maxLeaseMs: lease,
    maxResultBytes: { min: 1, max: bounds.maxResultBytes, describe: (bytes) => `${bytes} bytes` },
  };
  const beyond = (Object.keys(ranges) as RangedField[]).flatMap((name) => {
    const value = policy[name];
    const { min, max, describe } = ranges[name];
    if (value === undefined || (value >= min && value <= max)) return [];
    const description = `must be between ${describe(min)} and ${describe(max)}`;
    return [{ field: prefix + POLICY_FIELDS[name].proto, description }];
  });
  const linkProblem = policy.providerLink && providerLinkProblem(policy.providerLink);
  return linkProblem
    ? [...beyond, { field: prefix + POLICY_FIELDS.providerLink.proto, description: linkProblem }]
    : beyond;
}

interface Range {
  readonly min: number;
  readonly max: number;
  readonly describe: (limit: number) => string;
}

function describeLimitS(limitS: number): string {
  return describeLimitMs(limitS * 1000);
}

/** Long enough for a provider's search with filters; every namespace with a policy keeps its link in memory. */
const MAX_LINK_BYTES = 512;

const PLACEHOLDERS = /\{(?:key|owner)\}/g;

/**
 * Returns what is wrong with a link to a provider, such as "https://pay.example/search?q={key}"; undefined: nothing. A placeholder may
 * not be part of the host: a key that a caller chose would lead to a site that the caller chose.
 */
export function providerLinkProblem(link: string): string | undefined {
  if (link.length > MAX_LINK_BYTES) return `must have at most ${MAX_LINK_BYTES} bytes`;
  if (!/^[!-~]+$/.test(link)) return "must have printable ASCII characters only, without spaces";
  const isFilled = link.includes("{key}") && !/[{}]/.test(link.replace(PLACEHOLDERS, ""));
  if (!isFilled) return "must have {key}, may have {owner}, and no other braces";
  const [one, other] = ["a", "b"].map((text) => URL.parse(link.replace(PLACEHOLDERS, text)));
  if (one?.protocol !== "https:" || one.username !== "" || one.password !== "")
    return "must be an https URL without a user";
  return one.host === other?.host ? undefined : "must have its placeholders after the host";
}
