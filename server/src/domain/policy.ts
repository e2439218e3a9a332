import {
  type Policy_LateKeys,
  type Policy_OnLeaseExpiry,
  type Policy as PolicyMessage,
  PolicySchema,
} from "../gen/onceward/v1/policy_pb.ts";
import { defaultsOf, definedOf, messageFields, type Overrides, type PlainFields } from "./fields.ts";
import { MAX_KEY_AHEAD_MS } from "./limits.ts";

/** What happens when a lease expires: the next Claim gets the key, or the record is ambiguous until a person decides or its retention ends. */
export type OnLeaseExpiry = Exclude<keyof typeof Policy_OnLeaseExpiry, "UNSPECIFIED">;

/**
 * What happens to a claim whose key was created longer ago than its retention, and has no record: it is granted; it is
 * refused; or it is refused, and so is a key of which the time is unknown.
 */
export type LateKeys = Exclude<keyof typeof Policy_LateKeys, "UNSPECIFIED">;

/**
 * How a namespace's records behave: the fields of the contract's message, which explains them. Seconds and milliseconds are whole
 * numbers.
 */
export interface Policy extends PlainFields<PolicyMessage> {
  readonly keyRetentionS: number;
  readonly resultRetentionS: number;
  readonly failureRetentionS: number;
  readonly defaultLeaseMs: number;
  readonly maxLeaseMs: number;
  readonly onLeaseExpiry: OnLeaseExpiry;
  /** Undefined: without a limit under RECLAIM; not at all under HOLD. */
  readonly reclaimWithinS: number | undefined;
  readonly lateKeys: LateKeys;
}

/** The fields of a policy. */
export const POLICY_FIELDS = messageFields<Policy>(PolicySchema);

/** When `keyRetentionS` was lengthened, in milliseconds since the Unix epoch, and what it was before. */
export interface Lengthening {
  readonly atMs: number;
  readonly beforeS: number;
}

/** What earlier policies of a tenant or a namespace leave behind: keys that were created under them keep their limits. */
export interface PolicyHistory {
  readonly lengthened: Lengthening | undefined;
  /** Since when late keys are refused, in milliseconds since the Unix epoch; undefined: never, or since the first claim. */
  readonly refusedSinceMs: number | undefined;
}

/** How long a policy keeps keys and results in records, in seconds. */
export type Retention = Pick<Policy, "keyRetentionS" | "resultRetentionS" | "failureRetentionS">;

/** A policy in force, with what the earlier policies of its tenant and its namespace leave behind. */
export interface PolicyInForce extends Policy {
  /** The retention that the policy stamps on records. */
  readonly stamped: Retention;
  readonly lengthenings: readonly Lengthening[];
  /** As PolicyHistory. */
  readonly refusedSinceMs: number | undefined;
}

/**
 * The fields that a tenant or a namespace sets, with what its earlier policies leave behind. A namespace inherits an unset field
 * from its tenant.
 */
export interface PolicyOverrides extends Overrides<Policy> {
  readonly history?: PolicyHistory | undefined;
}

/** The policy of a tenant that sets no field. */
export const DEFAULT_POLICY = defaultsOf(POLICY_FIELDS) as Policy;

/**
 * How much longer than `keyRetentionS` records are kept where late keys are refused. A record must outlast every moment at
 * which its key is young. A key may be claimed MAX_KEY_AHEAD_MS before its own time, and is young until its retention after
 * that time. The other half is for what else may lie between the decision about a claim and the clock that decides
 * about the next one: statements that wait, replicas that learn of a change of the policy POLICY_SETTLES_MS later, and the clock
 * of a standby that was promoted.
 */
export const LATE_KEY_GRACE_S = (2 * MAX_KEY_AHEAD_MS) / 1000;

/**
 * Returns the policy in force. Layers are given from the most general to the most specific.
 *
 * An unset retention follows the wider one (failure → result → key), and none is longer than the key's: a namespace that
 * shortens `keyRetentionS` shortens the others with it. HOLD has no `reclaimWithinS`, also not an inherited one.
 */
export function resolvePolicy(...layers: readonly PolicyOverrides[]): PolicyInForce {
  const set: Partial<Policy> = Object.assign({}, ...layers.map(fieldsOf));
  const keyRetentionS = set.keyRetentionS ?? DEFAULT_POLICY.keyRetentionS;
  const resultRetentionS = Math.min(set.resultRetentionS ?? keyRetentionS, keyRetentionS);
  const maxLeaseMs = set.maxLeaseMs ?? DEFAULT_POLICY.maxLeaseMs;
  const isReclaimed = set.reclaimWithinS !== undefined && set.onLeaseExpiry !== "HOLD";
  const policy = {
    ...DEFAULT_POLICY,
    ...set,
    keyRetentionS,
    resultRetentionS,
    failureRetentionS: Math.min(set.failureRetentionS ?? resultRetentionS, keyRetentionS),
    reclaimWithinS: isReclaimed ? Math.min(set.reclaimWithinS, keyRetentionS) : undefined,
    maxLeaseMs,
    defaultLeaseMs: Math.min(set.defaultLeaseMs ?? DEFAULT_POLICY.defaultLeaseMs, maxLeaseMs),
  };
  return {
    ...policy,
    stamped: stampedRetention(policy),
    lengthenings: lengtheningsOf(layers),
    refusedSinceMs: latest(layers.map(({ history }) => history?.refusedSinceMs)),
  };
}

/**
 * Returns the retention that a policy stamps on records. Where late keys are refused, the key is kept for LATE_KEY_GRACE_S more,
 * and so is a result that is kept for as long as its key.
 */
function stampedRetention(policy: Policy): Retention {
  const { keyRetentionS, resultRetentionS, failureRetentionS } = policy;
  const longerS = refusesLateKeys(policy) ? LATE_KEY_GRACE_S : 0;
  const stamped = (retentionS: number) => (retentionS === keyRetentionS ? retentionS + longerS : retentionS);
  return {
    keyRetentionS: stamped(keyRetentionS),
    resultRetentionS: stamped(resultRetentionS),
    failureRetentionS: stamped(failureRetentionS),
  };
}

/** Whether keys that are too old are refused. */
export function refusesLateKeys({ lateKeys }: Pick<Policy, "lateKeys">): boolean {
  return lateKeys !== "RUN";
}

/** Returns the fields that a layer sets. */
export function fieldsOf(layer: PolicyOverrides): Partial<Policy> {
  return definedOf(POLICY_FIELDS, layer);
}

/** Returns the lengthenings of the retention in force: not those of a layer whose retention a later layer replaces. */
function lengtheningsOf(layers: readonly PolicyOverrides[]): readonly Lengthening[] {
  const from = layers.findLastIndex(({ keyRetentionS }) => (keyRetentionS ?? undefined) !== undefined);
  return layers.slice(Math.max(0, from)).flatMap(({ history }) => history?.lengthened ?? []);
}

function latest(instantsMs: readonly (number | undefined)[]): number | undefined {
  const known = instantsMs.filter((each) => each !== undefined);
  return known.length === 0 ? undefined : Math.max(...known);
}
