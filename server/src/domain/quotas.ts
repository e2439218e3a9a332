import { type Quotas as QuotasMessage, QuotasSchema } from "../gen/onceward/v1/policy_pb.ts";
import {
  defaultsOf,
  definedOf,
  greatest,
  messageFields,
  type Overrides,
  type PlainFields,
} from "./fields.ts";

/**
 * How much of the service a tenant may use: the fields of the contract's message, which explains them. An undefined quota does not
 * limit.
 */
export interface Quotas extends Overrides<PlainFields<QuotasMessage>> {
  /** Undefined: DEFAULT_DECLARED_NAMESPACES. */
  readonly declaredNamespaces?: number | undefined;
  readonly weight: number;
  readonly dryRun: boolean;
}

/** The fields of quotas. A tenant's weight limits nothing: its column is not named as a quota. */
export const QUOTA_FIELDS = messageFields<Quotas>(QuotasSchema, (name) =>
  name === "weight" ? name : `quota_${name}`,
);

// Answers have a number of namespaces only if the operator set one.
const { declaredNamespaces, ...filledIn } = defaultsOf(QUOTA_FIELDS);

/**
 * How many namespaces a tenant may declare by default. Each is part of a change of the whole tenant's
 * retention.
 */
export const DEFAULT_DECLARED_NAMESPACES = declaredNamespaces ?? 0;
/** The highest quota of declared namespaces. */
export const MAX_DECLARED_NAMESPACES = greatest(QUOTA_FIELDS, "declaredNamespaces");

/** The quotas of a tenant for which the operator set none. */
export const NO_QUOTAS = filledIn as Quotas;

/** Returns quotas with defaults for the unset ones. */
export function completeQuotas(set: Overrides<Quotas>): Quotas {
  return { ...NO_QUOTAS, ...definedOf(QUOTA_FIELDS, set) };
}

/** The records that a tenant stores, as they were last counted. */
export interface StoredTotals {
  readonly records: number;
  readonly storedBytes: number;
}

/**
 * Maximum unfinished jobs of a tenant: more than people create while some run, and few enough to read at each
 * check.
 */
export const MAX_UNFINISHED_JOBS = 20;
