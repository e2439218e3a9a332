import type { Random } from "../../../support/random.ts";
import type { NamespacePolicy } from "../../history/operation.ts";

/**
 * A group of keys that the load uses. Each client derives the keys in use from the shared clock, so clients
 * use the same keys without communication, and no key gets more operations than the checker can order.
 */
export interface Space {
  readonly tenant: string;
  readonly namespace: string;
  /** The beginning of every key. */
  readonly prefix: string;
  /** Whether the provider compares tokens. */
  readonly fenced: boolean;
}

/** A namespace of every tenant. */
export interface LoadNamespace extends Omit<NamespacePolicy, "tenant"> {
  readonly prefix: string;
  readonly fenced: boolean;
}

const DAY_MS = 86_400_000;
const LEASE_MS = 1000;
const LONG = { keyRetentionMs: DAY_MS, resultRetentionMs: DAY_MS, failureRetentionMs: DAY_MS };
const RECLAIM = { defaultLeaseMs: LEASE_MS, onLeaseExpiry: "RECLAIM" } as const;

/** The namespace whose holders mark when their effects begin, also those whose claims do not mark. */
export const MARKED = "held";

/**
 * `charges` and `charges.x` have keys that are equal once names are joined with dots. The retention of
 * `brief` changes while the load runs.
 */
export const NAMESPACES: readonly LoadNamespace[] = [
  { namespace: "charges", prefix: "x.", fenced: false, ...RECLAIM, ...LONG },
  { namespace: "charges.x", prefix: "", fenced: true, ...RECLAIM, ...LONG },
  { namespace: MARKED, prefix: "", fenced: false, ...RECLAIM, ...LONG, onLeaseExpiry: "HOLD" },
  { namespace: "within", prefix: "", fenced: false, ...RECLAIM, ...LONG, reclaimWithinMs: 3000 },
  {
    namespace: "brief",
    prefix: "",
    fenced: true,
    ...RECLAIM,
    keyRetentionMs: 90_000,
    resultRetentionMs: 75_000,
    failureRetentionMs: 60_000,
  },
];

/** The first one is administered; the others have equal keys, which show a service that mixes tenants up. */
export const TENANTS = ["acme", "globex", "initech"] as const;

export const SPACES: readonly Space[] = TENANTS.flatMap((tenant) =>
  NAMESPACES.map(({ namespace, prefix, fenced }) => ({ tenant, namespace, prefix, fenced })),
);

/** A key of a space. */
export interface Target extends Space {
  readonly key: string;
}

/** The time after which every space gets a new key. */
const STEP_MS = 1000;
/** Keys of a space in use at a time; each is in use for this many steps, longer than a lease. */
const LIVE_KEYS = 5;
/** How long all rushing clients use one key. */
const RUSH_MS = 250;
const RUSHING = 0.25;
const OLD = 0.12;
/** Old enough that retentions and cached copies have expired. */
const OLD_KEYS = 150;

/** Picks a key in use `elapsedMs` after the load began; `round` separates the keys of loads. */
export function pickTarget(random: Random, elapsedMs: number, round: string): Target {
  const newest = Math.floor(elapsedMs / STEP_MS) + LIVE_KEYS;
  const draw = random.next();
  if (draw < RUSHING) return target(Math.floor(elapsedMs / RUSH_MS) % SPACES.length, newest, round);
  const age = draw < RUSHING + OLD ? random.below(Math.min(newest, OLD_KEYS)) : random.below(LIVE_KEYS);
  return target(random.below(SPACES.length), newest - age, round);
}

/** Picks a key of the administered tenant that is, or recently was, in use. */
export function pickAdministered(random: Random, elapsedMs: number, round: string): Target {
  const newest = Math.floor(elapsedMs / STEP_MS) + LIVE_KEYS;
  return target(random.below(NAMESPACES.length), newest - random.below(2 * LIVE_KEYS), round);
}

function target(space: number, number: number, round: string): Target {
  const found = SPACES[space];
  if (found === undefined) throw new Error(`there is no space ${space}`);
  return { ...found, key: `${found.prefix}${round}-${number}` };
}

/** Returns the policies at the beginning of a run. */
export function initialPolicies(): NamespacePolicy[] {
  return TENANTS.flatMap((tenant) =>
    NAMESPACES.map(({ prefix: _prefix, fenced: _fenced, ...policy }) => ({ ...policy, tenant })),
  );
}
