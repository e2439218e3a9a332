/** A namespace of the traffic, and what is true of it. */
export interface TrafficNamespace {
  readonly name: string;
  /** Of the namespace's own policy; undefined: it is not declared, and the tenant's policy holds. */
  readonly policy?: { readonly keyRetentionS: number; readonly onLeaseExpiry: "RECLAIM" | "HOLD" };
  /** Of 100 operations. */
  readonly share: number;
  readonly story: string;
  /**
   * What is wrong with how its keys are made or used, as KeyDefect of `tenant_admin.proto`. UUID_PER_CLAIM takes 9,985 claims to
   * be suspected; the default run suspects the others.
   */
  readonly keyDefects: readonly ("NEW_KEY_PER_RETRY" | "UUID_PER_CLAIM" | "REPEATS_AFTER_EXPIRY")[];
}

const HOUR_S = 3600;
const DAY_S = 24 * HOUR_S;

/** The key retention of a tenant that sets none, which the undeclared namespace has. */
export const DEFAULT_RETENTION_S = 3 * DAY_S;

/** What the traffic plants. The order is the one of the printed table. */
export const NAMESPACES = [
  {
    name: "payments",
    policy: { keyRetentionS: 6 * HOUR_S, onLeaseExpiry: "RECLAIM" },
    share: 16,
    story:
      "retries within minutes; a reconciliation repeats some payments 27 h later, which 6 h do not cover",
    keyDefects: [],
  },
  {
    name: "webhooks",
    policy: { keyRetentionS: DAY_S, onLeaseExpiry: "RECLAIM" },
    share: 26,
    story:
      "each Monday, the events of Friday to Sunday are redriven: up to 75 h later, which 24 h do not cover",
    keyDefects: ["REPEATS_AFTER_EXPIRY"],
  },
  {
    name: "emails",
    policy: { keyRetentionS: DAY_S, onLeaseExpiry: "RECLAIM" },
    share: 34,
    story: "each retry has a new key: the same e-mail under two keys within minutes",
    keyDefects: ["NEW_KEY_PER_RETRY", "UUID_PER_CLAIM"],
  },
  {
    name: "payouts",
    policy: { keyRetentionS: 90 * DAY_S, onLeaseExpiry: "HOLD" },
    share: 6,
    story: "workers died during a payout, and their records wait for a person",
    keyDefects: [],
  },
  {
    name: "orders",
    policy: { keyRetentionS: DAY_S, onLeaseExpiry: "RECLAIM" },
    share: 16,
    story: "nothing is wrong: customers order the same again, as another order",
    keyDefects: [],
  },
  { name: "paymnets", share: 2, story: "a misspelt name that was not declared", keyDefects: [] },
] as const satisfies readonly TrafficNamespace[];

export const NAMESPACE_NAMES: readonly string[] = NAMESPACES.map(({ name }) => name);

export type NamespaceName = (typeof NAMESPACES)[number]["name"];
