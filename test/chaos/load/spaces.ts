import type { Random } from "../../demo/random.ts";
import type { NamespacePolicy } from "../../history/operation.ts";

/**
 * The names that the load works on. Every client knows which keys are in use at a moment from the clock that all share,
 * and so they meet without talking to each other; and no key sees more operations than the checker can order.
 */
export interface Space {
  readonly tenant: string;
  readonly namespace: string;
  /** What keys begin with. */
  readonly prefix: string;
  /** Whether the provider of its effects compares tokens. */
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

/**
 * The keys of `charges` and of `charges.x` are the same texts once a name is joined with dots. What `brief` remembers is
 * changed while the load runs.
 */
export const NAMESPACES: readonly LoadNamespace[] = [
  { namespace: "charges", prefix: "x.", fenced: false, ...RECLAIM, ...LONG },
  { namespace: "charges.x", prefix: "", fenced: true, ...RECLAIM, ...LONG },
  { namespace: "held", prefix: "", fenced: false, ...RECLAIM, ...LONG, onLeaseExpiry: "HOLD" },
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

/** The first one is administered; the others show each other's results to whoever mixes tenants up. */
export const TENANTS = ["acme", "globex", "initech"] as const;

export const SPACES: readonly Space[] = TENANTS.flatMap((tenant) =>
  NAMESPACES.map(({ namespace, prefix, fenced }) => ({ tenant, namespace, prefix, fenced })),
);

/** A key of a space. */
export interface Target extends Space {
  readonly key: string;
}

/** A new key begins in every space after this. */
const STEP_MS = 1000;
/** How many keys of a space are in use at a time: each for so many steps, which a lease or more fits into. */
const LIVE_KEYS = 5;
/** For so long all clients that rush meet at one key. */
const RUSH_MS = 250;
const RUSHING = 0.25;
const OLD = 0.12;
/** Beyond it lie the ends of retentions and of copies' validity. */
const OLD_KEYS = 150;

/** Picks keys as they are in use `elapsedMs` after the load began; `round` tells one load's keys from another's. */
export function pickTarget(random: Random, elapsedMs: number, round: string): Target {
  const newest = Math.floor(elapsedMs / STEP_MS) + LIVE_KEYS;
  const draw = random.next();
  if (draw < RUSHING) return target(Math.floor(elapsedMs / RUSH_MS) % SPACES.length, newest, round);
  const age = draw < RUSHING + OLD ? random.below(Math.min(newest, OLD_KEYS)) : random.below(LIVE_KEYS);
  return target(random.below(SPACES.length), newest - age, round);
}

/** A key of the administered tenant that is in use, or was a little while ago. */
export function pickAdministered(random: Random, elapsedMs: number, round: string): Target {
  const newest = Math.floor(elapsedMs / STEP_MS) + LIVE_KEYS;
  return target(random.below(NAMESPACES.length), newest - random.below(2 * LIVE_KEYS), round);
}

function target(space: number, number: number, round: string): Target {
  const found = SPACES[space];
  if (found === undefined) throw new Error(`there is no space ${space}`);
  return { ...found, key: `${found.prefix}${round}-${number}` };
}

/** The policies that hold at the beginning. */
export function initialPolicies(): NamespacePolicy[] {
  return TENANTS.flatMap((tenant) =>
    NAMESPACES.map(({ prefix: _prefix, fenced: _fenced, ...policy }) => ({ ...policy, tenant })),
  );
}
