import { NAMESPACE_PATTERN } from "../../domain/limits.ts";
import { CATALOGUE } from "../../domain/refusal.ts";
import type { OperationHooks } from "../../records/after-operation.ts";

/** Operations of an API key, or of a token's subject, that were refused for one reason. */
export interface RefusedOperations {
  /** Empty: it had no valid name. */
  readonly namespace: string;
  readonly actor: string;
  /** A reason of the catalogue. */
  readonly reason: string;
  readonly operations: number;
}

/** Refused operations, by tenant. */
export type RefusedByTenant = Readonly<Record<string, readonly RefusedOperations[]>>;

const WINDOW_MS = 60_000;
/** Of a replica's row, some 100 KB. Operations of further combinations are not told apart by who called. */
const MAX_ENTRIES = 1000;
/** A tenant whose calls are refused leaves room for others. */
export const MAX_ENTRIES_OF_TENANT = 100;
/** A token's subject is a text of its issuer. */
const MAX_ACTOR_CHARACTERS = 128;

/** By outcome. Errors of the service itself refuse nothing. */
const REASONS: ReadonlyMap<string, string> = new Map(
  Object.entries(CATALOGUE)
    .filter(([, code]) => !["UNAVAILABLE", "INTERNAL", "DEADLINE_EXCEEDED"].includes(code))
    .map(([reason]) => [reason.toLowerCase(), reason]),
);

type Counts = Map<string, RefusedOperations & { readonly tenantId: number }>;

/**
 * Counts what a replica refuses, by who called. Only a refused operation costs anything.
 *
 * @param now returns milliseconds of a clock that no one sets.
 */
export function createRecentRefusals(now: () => number = () => performance.now()) {
  let open: Counts = new Map();
  let sizes = new Map<number, number>();
  let slots: { readonly endedMs: number; readonly counts: Counts }[] = [];

  const declined: OperationHooks["declined"] = (named, outcome, { principal }) => {
    const reason = REASONS.get(outcome);
    if (reason === undefined || principal.role === "OPERATOR") return;
    const tenantId = principal.tenant.id;
    const namespace = NAMESPACE_PATTERN.test(named.namespace) ? named.namespace : "";
    const actor = principal.actor.slice(0, MAX_ACTOR_CHARACTERS);
    const name = JSON.stringify([tenantId, namespace, actor, reason]);
    const known = open.get(name);
    if (known === undefined) {
      const size = sizes.get(tenantId) ?? 0;
      if (open.size >= MAX_ENTRIES || size >= MAX_ENTRIES_OF_TENANT) return;
      sizes.set(tenantId, size + 1);
    }
    open.set(name, { tenantId, namespace, actor, reason, operations: (known?.operations ?? 0) + 1 });
  };

  return {
    declined,
    /** Ends a time of counting, which began at the end of the one before. */
    endSlot(): void {
      const endedMs = now();
      slots = [...slots.filter((slot) => endedMs - slot.endedMs < WINDOW_MS), { endedMs, counts: open }];
      open = new Map();
      sizes = new Map();
    },
    /** Returns what was refused in the times that ended within the last minute, by tenant the most first. */
    lastMinute(): RefusedByTenant {
      const sums: Counts = new Map();
      for (const { counts } of slots)
        for (const [name, each] of counts)
          sums.set(name, { ...each, operations: (sums.get(name)?.operations ?? 0) + each.operations });
      const sorted = [...sums.values()].sort((a, b) => b.operations - a.operations).slice(0, MAX_ENTRIES);
      const byTenant = Map.groupBy(sorted, ({ tenantId }) => tenantId);
      return Object.fromEntries(
        Array.from(byTenant, ([tenantId, of]) => [tenantId, of.map(({ tenantId: _, ...each }) => each)]),
      );
    },
  };
}

/** What a replica refused in the last minute, by who called. */
export type RecentRefusals = ReturnType<typeof createRecentRefusals>;

/** Returns the sums of what several replicas refused, the most first. */
export function sumRefused(all: readonly RefusedOperations[]): readonly RefusedOperations[] {
  const groups = Map.groupBy(all, ({ namespace, actor, reason }) =>
    JSON.stringify([namespace, actor, reason]),
  );
  return [...groups.values()]
    .map((group) => ({
      ...(group[0] as RefusedOperations),
      operations: group.reduce((sum, { operations }) => sum + operations, 0),
    }))
    .sort((a, b) => b.operations - a.operations);
}
