import type { Violation } from "./check.ts";
import { databaseClock } from "./clock-moves.ts";
import {
  type ClockMove,
  type History,
  isDefinite,
  type NamespacePolicy,
  nameOf,
  type Operation,
} from "./operation.ts";
import { range } from "./state.ts";

export interface LivenessOptions {
  /** When the last fault had healed. */
  readonly healedAtMs: number;
  /** How soon after that, and after a lease's end, a key must be claimable again. */
  readonly withinMs?: number;
}

/** The result of a liveness check. */
export interface Liveness {
  readonly violations: readonly Violation[];
  /** Keys that were claimed late enough to be judged. */
  readonly probedKeys: number;
}

const WITHIN_MS = 2000;

/**
 * Checks invariant 9: after faults have healed, a claim that is made 2 s or more after every lease has ended
 * is answered, and not with IN_PROGRESS. The checker itself has no such bound for an unknown outcome, because
 * the effect may come at any time; here it is assumed to have come, or to be lost, when the faults healed.
 */
export function checkLiveness(
  history: History,
  { healedAtMs, withinMs = WITHIN_MS }: LivenessOptions,
): Liveness {
  const violations: Violation[] = [];
  const { clockMoves = [] } = history;
  let probedKeys = 0;
  for (const operations of Map.groupBy(history.operations, nameOf).values()) {
    const [first] = operations;
    if (first === undefined) continue;
    const { tenant, namespace, key } = first;
    const policy = history.policies.find((entry) => entry.tenant === tenant && entry.namespace === namespace);
    if (policy === undefined) throw new Error(`the history has no policy for ${tenant}/${namespace}`);
    const probes = operations.filter((operation) =>
      isProbe(operation, operations, policy, { healthyFromMs: healedAtMs + withinMs, withinMs, clockMoves }),
    );
    if (probes.length > 0) probedKeys++;
    for (const probe of probes.filter(isStuck)) {
      const message = `${probe.id}: ${probe.answer.kind} when every lease had ended for ${withinMs} ms and more`;
      violations.push({ tenant, namespace, key, invariant: 9, message, operations });
    }
  }
  return { violations, probedKeys };
}

interface Health {
  readonly healthyFromMs: number;
  readonly withinMs: number;
  readonly clockMoves: readonly ClockMove[];
}

function isProbe(
  probe: Operation,
  operations: readonly Operation[],
  policy: NamespacePolicy,
  { healthyFromMs, withinMs, clockMoves }: Health,
): boolean {
  if (probe.request.kind !== "claim" || probe.invokedAtMs < healthyFromMs) return false;
  return operations.every((other) => {
    if (other === probe || other.invokedAtMs > probe.returnedAtMs) return true;
    return leaseEndsBy(other, policy, healthyFromMs - withinMs, clockMoves) + withinMs <= probe.invokedAtMs;
  });
}

/** Returns the last moment at which a lease granted by this operation may end. */
function leaseEndsBy(
  operation: Operation,
  policy: NamespacePolicy,
  healedAtMs: number,
  clockMoves: readonly ClockMove[],
): number {
  const { request, answer, invokedAtMs, returnedAtMs } = operation;
  if (request.kind !== "claim" && request.kind !== "extendLease") return Number.NEGATIVE_INFINITY;
  const leaseMs = request.leaseMs ?? policy.defaultLeaseMs;
  if (isDefinite(operation) && answer.kind !== "claimed" && answer.kind !== "ok")
    return Number.NEGATIVE_INFINITY;
  const grantedBy = isDefinite(operation) ? returnedAtMs : Math.max(invokedAtMs, healedAtMs);
  return databaseClock(range(invokedAtMs, grantedBy), clockMoves).to + leaseMs;
}

function isStuck({ answer }: Operation): boolean {
  return answer.kind === "inProgress" || answer.kind === "unknown";
}
