import type { PolicyOverrides } from "./policy.ts";
import type { Violation } from "./refusal.ts";

/** Between what a tenant may set its policies. */
export interface PolicyBounds {
  readonly minKeyRetentionS: number;
  readonly maxKeyRetentionS: number;
  readonly maxLeaseMs: number;
  readonly maxResultBytes: number;
}

const DAY_S = 86_400;

/** What the contract allows; an operator may narrow it, and never widen. */
export const WIDEST_BOUNDS: PolicyBounds = {
  minKeyRetentionS: 60,
  // A year, and the month in which it is noticed.
  maxKeyRetentionS: 400 * DAY_S,
  maxLeaseMs: DAY_S * 1000,
  maxResultBytes: 1024 * 1024,
};

/** What an operator narrowed; what is undefined is the contract's. */
export type NarrowedBounds = { readonly [Bound in keyof PolicyBounds]?: PolicyBounds[Bound] | undefined };

/** The bounds of a tenant. */
export function boundsInForce(narrowed: NarrowedBounds): PolicyBounds {
  return {
    minKeyRetentionS: narrowed.minKeyRetentionS ?? WIDEST_BOUNDS.minKeyRetentionS,
    maxKeyRetentionS: narrowed.maxKeyRetentionS ?? WIDEST_BOUNDS.maxKeyRetentionS,
    maxLeaseMs: narrowed.maxLeaseMs ?? WIDEST_BOUNDS.maxLeaseMs,
    maxResultBytes: narrowed.maxResultBytes ?? WIDEST_BOUNDS.maxResultBytes,
  };
}

/** A shorter lease would end before an ordinary network hiccup does. */
const MIN_LEASE_MS = 1000;

/**
 * Everything in a policy that is beyond the bounds or contradicts itself, by the field's name in `policy.proto`, behind
 * `prefix`.
 */
export function policyViolations(
  policy: PolicyOverrides,
  bounds: PolicyBounds,
  prefix: string,
): readonly Violation[] {
  const { keyRetentionS, resultRetentionS, failureRetentionS, defaultLeaseMs, maxLeaseMs } = policy;
  const { minKeyRetentionS, maxKeyRetentionS } = bounds;
  const retention = { min: minKeyRetentionS, max: maxKeyRetentionS, unit: "s" };
  // A result may be let go sooner than any key.
  const result = { min: WIDEST_BOUNDS.minKeyRetentionS, max: keyRetentionS ?? maxKeyRetentionS, unit: "s" };
  const lease = { min: MIN_LEASE_MS, max: bounds.maxLeaseMs, unit: "ms" };
  const checks: readonly (readonly [string, number | undefined, Range])[] = [
    ["key_retention", keyRetentionS, retention],
    ["result_retention", resultRetentionS, result],
    ["failure_retention", failureRetentionS, result],
    ["default_lease", defaultLeaseMs, { ...lease, max: maxLeaseMs ?? lease.max }],
    ["max_lease", maxLeaseMs, lease],
    ["max_result_bytes", policy.maxResultBytes, { min: 1, max: bounds.maxResultBytes, unit: "bytes" }],
  ];
  return checks.flatMap(([field, value, range]) =>
    value === undefined || isWithin(value, range)
      ? []
      : [{ field: prefix + field, description: said(range) }],
  );
}

interface Range {
  readonly min: number;
  readonly max: number;
  readonly unit: string;
}

function isWithin(value: number, { min, max }: Range): boolean {
  return value >= min && value <= max;
}

function said({ min, max, unit }: Range): string {
  return `must be between ${min} ${unit} and ${max} ${unit}`;
}
