import { MAX_KEY_BYTES, NAMESPACE_PATTERN } from "../domain/limits.ts";
import type { OperationHooks } from "../records/after-operation.ts";
import type { RecordId } from "../records/record.ts";

/** What a call on a key got in place of its claim. */
export const DECLINED = [
  "replayed",
  "in_progress",
  "ambiguous",
  "mismatched",
  "too_old",
  "over_quota",
  "superseded",
  "unreadable",
] as const;
export type Declined = (typeof DECLINED)[number];

/** A call that was declined. */
export interface DeclinedCall {
  /** In milliseconds since the Unix epoch. */
  readonly atMs: number;
  readonly outcome: Declined;
  /** The id of the API key, or the subject of the token. */
  readonly actor: string;
  readonly requestId: string;
}

/** What was declined of a key since it was stored last. */
export interface DeclinedKey {
  readonly id: RecordId;
  readonly counts: Readonly<Record<Declined, number>>;
  readonly firstAtMs: number;
  readonly lastAtMs: number;
  /** At most MAX_CALLS, oldest first. */
  readonly calls: readonly DeclinedCall[];
}

/** The outcomes that are counted, as metrics name them; others, such as an unreachable database, are not about a key. */
const OUTCOMES: ReadonlyMap<string, Declined> = new Map([
  ["completed", "replayed"],
  ["in_progress", "in_progress"],
  ["ambiguous", "ambiguous"],
  ["fingerprint_mismatch", "mismatched"],
  ["key_too_old", "too_old"],
  ["quota_rate", "over_quota"],
  ["quota_concurrency", "over_quota"],
  ["quota_records", "over_quota"],
  ["quota_bytes", "over_quota"],
  ["claim_superseded", "superseded"],
  ["record_unreadable", "unreadable"],
]);

/** Duplicates that a service expects. */
const EXPECTED: ReadonlySet<Declined> = new Set(["replayed", "in_progress"]);

/** Calls of a key: enough to see who repeats it. */
export const MAX_CALLS = 8;
/** A token's subject is a text of its issuer. */
const MAX_ACTOR_CHARACTERS = 128;
/** Keys that wait to be stored: with 8 calls each some 6 MiB. */
const MAX_KEYS = 4096;
/** A tenant that repeats many keys leaves room for others. */
const MAX_KEYS_OF_TENANT = MAX_KEYS / 4;

const ZEROS = Object.fromEntries(DECLINED.map((name) => [name, 0])) as Record<Declined, number>;

class Tally implements DeclinedKey {
  readonly id: RecordId;
  readonly counts = { ...ZEROS };
  readonly firstAtMs: number;
  lastAtMs: number;
  readonly calls: DeclinedCall[] = [];

  constructor(id: RecordId, atMs: number) {
    this.id = id;
    this.firstAtMs = atMs;
    this.lastAtMs = atMs;
  }

  /** Whether a call with this outcome is kept: of expected duplicates the first ones, so that a busy key costs little. */
  hasRoom(outcome: Declined): boolean {
    return this.calls.length < MAX_CALLS || !EXPECTED.has(outcome);
  }

  keep(call: DeclinedCall): void {
    if (this.calls.length === MAX_CALLS) {
      const expected = this.calls.findIndex(({ outcome }) => EXPECTED.has(outcome));
      this.calls.splice(Math.max(expected, 0), 1);
    }
    this.calls.push(call);
  }

  /** Returns the order in which keys are stored, the highest first. */
  weight(): number {
    const { counts } = this;
    const all = DECLINED.reduce((sum, name) => sum + counts[name], 0);
    const isExpected = all === counts.replayed + counts.in_progress;
    return isExpected ? all : all + Number.MAX_SAFE_INTEGER / 2;
  }
}

/** The keys of a tenant that wait to be stored. */
interface TenantKeys {
  /** Of all namespaces. */
  size: number;
  readonly byNamespace: Map<string, Map<string, Tally>>;
}

/**
 * Counts what is declined by key. What has no room is not counted.
 *
 * @param now returns milliseconds since the Unix epoch.
 */
export function createDeclinedKeys(now: () => number = Date.now) {
  const tenants = new Map<number, TenantKeys>();
  let size = 0;

  /** Returns the counts of a key; undefined if there is no room, or there is no such key. */
  function addKey(id: RecordId): Tally | undefined {
    const { tenantId, namespace, key } = id;
    const tenant = tenants.get(tenantId) ?? { size: 0, byNamespace: new Map<string, Map<string, Tally>>() };
    if (size >= MAX_KEYS || tenant.size >= MAX_KEYS_OF_TENANT) return undefined;
    if (!NAMESPACE_PATTERN.test(namespace) || Buffer.byteLength(key) > MAX_KEY_BYTES) return undefined;
    const keys = tenant.byNamespace.get(namespace) ?? new Map<string, Tally>();
    const tally = new Tally(id, now());
    keys.set(key, tally);
    tenant.byNamespace.set(namespace, keys);
    tenant.size++;
    tenants.set(tenantId, tenant);
    size++;
    return tally;
  }

  function removeKey({ tenantId, namespace, key }: RecordId): void {
    const tenant = tenants.get(tenantId);
    const keys = tenant?.byNamespace.get(namespace);
    if (tenant === undefined || keys?.delete(key) !== true) return;
    tenant.size--;
    size--;
    if (keys.size === 0) tenant.byNamespace.delete(namespace);
    if (tenant.size === 0) tenants.delete(tenantId);
  }

  /** Returns the keys that are stored next. */
  function heaviest(max: number): readonly Tally[] {
    const byTurn = [...tenants.values()].flatMap(({ byNamespace }) =>
      [...byNamespace.values()]
        .flatMap((keys) => [...keys.values()])
        .sort((a, b) => b.weight() - a.weight())
        .slice(0, max)
        .map((tally, turn) => ({ tally, turn })),
    );
    return byTurn
      .sort((a, b) => a.turn - b.turn)
      .slice(0, max)
      .map(({ tally }) => tally);
  }

  const declined: OperationHooks["declined"] = ({ namespace, key }, name, call) => {
    const { principal } = call;
    const outcome = OUTCOMES.get(name);
    if (outcome === undefined || principal.role === "OPERATOR") return;
    const tenantId = principal.tenant.id;
    const known = tenants.get(tenantId)?.byNamespace.get(namespace)?.get(key);
    const tally = known ?? addKey({ tenantId, namespace, key });
    if (tally === undefined) return;
    const atMs = known === undefined ? tally.firstAtMs : now();
    tally.counts[outcome]++;
    tally.lastAtMs = atMs;
    if (!tally.hasRoom(outcome)) return;
    const actor = principal.actor.slice(0, MAX_ACTOR_CHARACTERS);
    tally.keep({ atMs, outcome, actor, requestId: call.requestId });
  };

  return {
    declined,
    /** Removes and returns up to `max` keys: in turns by tenant, first those with refusals, then those with most calls. */
    take(max: number): readonly DeclinedKey[] {
      const taken = heaviest(max);
      // The others wait, unless they keep later keys out.
      const isFull = size >= MAX_KEYS;
      for (const [tenantId, tenant] of tenants) {
        if (!isFull && tenant.size < MAX_KEYS_OF_TENANT) continue;
        tenants.delete(tenantId);
        size -= tenant.size;
      }
      for (const { id } of taken) removeKey(id);
      return taken;
    },
  };
}
