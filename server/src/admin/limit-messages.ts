import type { Duration } from "@bufbuild/protobuf/wkt";
import { type NarrowedBounds, type PolicyBounds, WIDEST_BOUNDS } from "../domain/policy-bounds.ts";
import { MAX_DECLARED_NAMESPACES, NO_QUOTAS, type Quotas } from "../domain/quotas.ts";
import type { PolicyBounds as BoundsMessage, Quotas as QuotasMessage } from "../gen/onceward/v1/policy_pb.ts";
import type { Violations } from "../messages/violations.ts";

/** The fields of PolicyBounds: their names in `policy.proto`, in the message, and in the domain. */
const BOUND_FIELDS = [
  ["policy_bounds.min_key_retention", "minKeyRetention", "minKeyRetentionS"],
  ["policy_bounds.max_key_retention", "maxKeyRetention", "maxKeyRetentionS"],
  ["policy_bounds.max_lease", "maxLease", "maxLeaseMs"],
  ["policy_bounds.max_result_bytes", "maxResultBytes", "maxResultBytes"],
] as const satisfies readonly (readonly [string, keyof BoundsMessage, keyof PolicyBounds])[];

/** The fields of Quotas, which have the same names in the message and in the domain. */
const QUOTA_FIELDS = [
  ["quotas.operations_per_second", "operationsPerSecond"],
  ["quotas.burst", "burst"],
  ["quotas.concurrent_calls", "concurrentCalls"],
  ["quotas.live_records", "liveRecords"],
  ["quotas.stored_bytes", "storedBytes"],
  ["quotas.weight", "weight"],
  ["quotas.dry_run", "dryRun"],
  ["quotas.declared_namespaces", "declaredNamespaces"],
] as const satisfies readonly (readonly [string, keyof QuotasMessage & keyof Quotas])[];

/** As an update's mask names them. */
export const LIMIT_FIELDS: readonly string[] = [...BOUND_FIELDS, ...QUOTA_FIELDS].map(([field]) => field);

/** What an operator sets of a tenant. */
export interface Limits {
  readonly bounds: NarrowedBounds;
  readonly quotas: Quotas;
}

/** A request that sets them. */
export interface LimitMessages {
  readonly policyBounds?: BoundsMessage | undefined;
  readonly quotas?: QuotasMessage | undefined;
}

/** Whether a request sets a field. */
export function isLimitSet({ policyBounds, quotas }: LimitMessages, field: string): boolean {
  const [, bound] = BOUND_FIELDS.find(([known]) => known === field) ?? [];
  if (bound !== undefined) return policyBounds?.[bound] !== undefined;
  const [, quota] = QUOTA_FIELDS.find(([known]) => known === field) ?? [];
  if (quota === "dryRun") return quotas?.dryRun === true;
  return quota !== undefined && quotas?.[quota] !== undefined;
}

/** What a request sets. Adds a violation for everything that is beyond what the contract allows. */
export function parseLimits({ policyBounds, quotas }: LimitMessages, violations: Violations): Limits {
  return { bounds: parseBounds(policyBounds, violations), quotas: parseQuotas(quotas, violations) };
}

function parseBounds(message: BoundsMessage | undefined, violations: Violations): NarrowedBounds {
  const { minKeyRetentionS, maxKeyRetentionS, maxLeaseMs, maxResultBytes } = WIDEST_BOUNDS;
  const ms = (field: string, value: Duration | undefined, minMs: number, maxMs: number) =>
    violations.durationMs(`policy_bounds.${field}`, value, { minMs, maxMs });
  const seconds = (field: string, value: Duration | undefined) => {
    const valueMs = ms(field, value, minKeyRetentionS * 1000, maxKeyRetentionS * 1000);
    return valueMs === undefined ? undefined : Math.ceil(valueMs / 1000);
  };
  const range = { min: 1, max: maxResultBytes };
  return {
    minKeyRetentionS: seconds("min_key_retention", message?.minKeyRetention),
    maxKeyRetentionS: seconds("max_key_retention", message?.maxKeyRetention),
    maxLeaseMs: ms("max_lease", message?.maxLease, MIN_LEASE_BOUND_MS, maxLeaseMs),
    maxResultBytes: inRange("policy_bounds.max_result_bytes", message?.maxResultBytes, range, violations),
  };
}

/** No lease is shorter. */
const MIN_LEASE_BOUND_MS = 1000;

const MAX_INT32 = 2 ** 31 - 1;
const MAX_WEIGHT = 100;

function parseQuotas(message: QuotasMessage | undefined, violations: Violations): Quotas {
  const positive = (field: string, value: number | bigint | undefined, max: number) =>
    inRange(`quotas.${field}`, value, { min: 1, max }, violations);
  return {
    operationsPerSecond: positive("operations_per_second", message?.operationsPerSecond, MAX_INT32),
    burst: positive("burst", message?.burst, MAX_INT32),
    concurrentCalls: positive("concurrent_calls", message?.concurrentCalls, MAX_INT32),
    liveRecords: positive("live_records", message?.liveRecords, Number.MAX_SAFE_INTEGER),
    storedBytes: positive("stored_bytes", message?.storedBytes, Number.MAX_SAFE_INTEGER),
    weight: positive("weight", message?.weight, MAX_WEIGHT) ?? NO_QUOTAS.weight,
    dryRun: message?.dryRun ?? NO_QUOTAS.dryRun,
    declaredNamespaces: positive("declared_namespaces", message?.declaredNamespaces, MAX_DECLARED_NAMESPACES),
  };
}

function inRange(
  field: string,
  value: number | bigint | undefined,
  { min, max }: { readonly min: number; readonly max: number },
  violations: Violations,
): number | undefined {
  if (value === undefined) return undefined;
  if (value >= min && value <= max) return Number(value);
  violations.add(field, `must be between ${min} and ${max}`);
  return undefined;
}

/** The fields that the mask names, as asked for; the others as they were. */
export function mergeLimits(was: Limits, asked: Limits, masked: ReadonlySet<string>): Limits {
  const bounds = BOUND_FIELDS.filter(([field]) => masked.has(field)).map(([, , name]) => [
    name,
    asked.bounds[name],
  ]);
  const quotas = QUOTA_FIELDS.filter(([field]) => masked.has(field)).map(([, name]) => [
    name,
    asked.quotas[name],
  ]);
  return {
    bounds: { ...was.bounds, ...Object.fromEntries(bounds) },
    quotas: { ...was.quotas, ...Object.fromEntries(quotas) },
  };
}

/** Adds a violation for bounds that nothing is within. */
export function checkBounds(
  { minKeyRetentionS, maxKeyRetentionS }: NarrowedBounds,
  violations: Violations,
): void {
  if (minKeyRetentionS === undefined || maxKeyRetentionS === undefined) return;
  if (minKeyRetentionS > maxKeyRetentionS) {
    violations.add("policy_bounds.min_key_retention", "must not be longer than max_key_retention");
  }
}
