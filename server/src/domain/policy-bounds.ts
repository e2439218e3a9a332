import { Unit } from "../gen/onceward/v1/facts_pb.ts";
import {
  type PolicyBounds as BoundsMessage,
  PolicyBoundsSchema,
  PolicySchema,
} from "../gen/onceward/v1/policy_pb.ts";
import {
  defaultsOf,
  definedOf,
  type Field,
  messageFields,
  type Overrides,
  type PlainFields,
  type Range,
} from "./fields.ts";
import { describeLimitMs } from "./limits.ts";
import { POLICY_FIELDS, type Policy, type PolicyOverrides, resolvePolicy } from "./policy.ts";
import type { Violation } from "./refusal.ts";

/** The bounds of the policies that a tenant may set. */
export interface PolicyBounds extends PlainFields<BoundsMessage> {
  readonly minKeyRetentionS: number;
  readonly maxKeyRetentionS: number;
  readonly maxLeaseMs: number;
}

const POLICY_NAMES = new Set(PolicySchema.fields.map(({ name }) => name));

/** The fields of policy bounds. */
export const BOUND_FIELDS = messageFields<PolicyBounds>(PolicyBoundsSchema, (name) =>
  POLICY_NAMES.has(name) ? `${name}_bound` : name,
);

/** The bounds that the contract allows; an operator may narrow them for a tenant, and never widen them. */
export const WIDEST_BOUNDS = defaultsOf(BOUND_FIELDS) as PolicyBounds;

/** The bounds that an operator narrowed; an unset one is the contract's. */
export type NarrowedBounds = Overrides<PolicyBounds>;

/** Returns the bounds of a tenant. */
export function boundsInForce(narrowed: NarrowedBounds): PolicyBounds {
  return { ...WIDEST_BOUNDS, ...definedOf(BOUND_FIELDS, narrowed) };
}

/**
 * Returns a violation for every field of a policy that is beyond the bounds or contradicts another field. Fields are named as
 * in `policy.proto`, after `prefix`.
 *
 * @param inherits the policies that it inherits from, from the most general to the most specific.
 */
export function policyViolations(
  policy: PolicyOverrides,
  bounds: PolicyBounds,
  prefix: string,
  inherits: readonly PolicyOverrides[] = [],
): readonly Violation[] {
  const { minKeyRetentionS, maxKeyRetentionS, maxLeaseMs, maxResultBytes } = bounds;
  // A result may expire sooner than any key may.
  const result = { max: policy.keyRetentionS ?? maxKeyRetentionS };
  const narrowed: Readonly<Partial<Record<keyof Policy, Partial<Range>>>> = {
    keyRetentionS: { min: minKeyRetentionS, max: maxKeyRetentionS },
    resultRetentionS: result,
    failureRetentionS: result,
    reclaimWithinS: result,
    defaultLeaseMs: { max: policy.maxLeaseMs ?? maxLeaseMs },
    maxLeaseMs: { max: maxLeaseMs },
    maxResultBytes: { max: maxResultBytes },
  };
  const beyond = POLICY_FIELDS.flatMap((field) => {
    const value = policy[field.name];
    if (typeof value !== "number" || field.range === undefined) return [];
    const { min, max } = { ...field.range, ...narrowed[field.name] };
    if (value >= min && value <= max) return [];
    const description = `must be between ${describe(field, min)} and ${describe(field, max)}`;
    return [{ field: prefix + field.descriptor.name, description }];
  });
  const isHeld = resolvePolicy(...inherits, policy).onLeaseExpiry === "HOLD";
  if (!isHeld || policy.reclaimWithinS === undefined) return beyond;
  // Both, because an update may set one of them alone.
  return [
    ...beyond,
    { field: `${prefix}on_lease_expiry`, description: "must be RECLAIM where reclaim_within is set" },
    { field: `${prefix}reclaim_within`, description: "needs on_lease_expiry RECLAIM" },
  ];
}

/** Returns a limit of a field in words, with its unit. */
function describe({ kind, facts }: Field<Policy>, limit: number): string {
  if (kind === "seconds") return describeLimitMs(limit * 1000);
  if (kind === "milliseconds") return describeLimitMs(limit);
  return facts.unit === Unit.BYTES ? `${limit} bytes` : `${limit}`;
}
