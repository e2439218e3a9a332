import type { Violation } from "./check.ts";
import { databaseClock, retentionFollowedMs } from "./clock-moves.ts";
import {
  type ClockMove,
  type History,
  type NamespacePolicy,
  nameOf,
  type Operation,
  type RecordName,
} from "./operation.ts";
import { range } from "./state.ts";

/** An effect in the outside world, and the token of its claim. */
export interface Effect extends RecordName {
  readonly token: number;
  readonly atMs: number;
}

/** The effects that the outside world counted. */
export interface Effects {
  /** At a provider that charges every caller. */
  readonly unfenced: readonly Effect[];
  /** At a provider that compares tokens: see FencedProvider. */
  readonly fenced: readonly Effect[];
}

/**
 * The third oracle. A fenced provider has no two effects for a key. An unfenced one has two only where the
 * earlier claim may have lost its lease under RECLAIM, or an administrator or retention came between: then it
 * is unknown how far its holder came. Each effect belongs to a granted claim, and a claim completed with a
 * success had an effect or found one.
 */
export function checkEffects(history: History, { unfenced, fenced }: Effects): Violation[] {
  const charges = Map.groupBy([...unfenced, ...fenced], nameOf);
  const fencedOnly = Map.groupBy(fenced, nameOf);
  const operations = Map.groupBy(history.operations, nameOf);
  const names = new Set([...charges.keys(), ...operations.keys()]);
  return [...names].flatMap((name) => {
    const own = operations.get(name) ?? [];
    const effects = charges.get(name) ?? [];
    const [first] = [...own, ...effects];
    if (first === undefined) return [];
    const { tenant, namespace, key } = first;
    const policy = history.policies.find((entry) => entry.tenant === tenant && entry.namespace === namespace);
    if (policy === undefined) throw new Error(`the history has no policy for ${tenant}/${namespace}`);
    const problems = [
      ...ungranted(effects, own),
      ...missing(effects, own),
      ...doubled(effects, own, {
        ...policy,
        keyRetentionMs: shortestRetentionMs(history, own, policy),
        clockMoves: history.clockMoves ?? [],
      }),
      ...((fencedOnly.get(name)?.length ?? 0) > 1 ? ["a fenced provider had more than one effect"] : []),
    ];
    return problems.map((message) => ({ tenant, namespace, key, invariant: 1, message, operations: own }));
  });
}

/** Returns the shortest retention that a record of the key can have had. */
function shortestRetentionMs(
  { retentionChanges = [] }: History,
  operations: readonly Operation[],
  { tenant, namespace, keyRetentionMs }: NamespacePolicy,
): number {
  const changes = retentionChanges.filter(
    (change) => change.tenant === tenant && change.namespace === namespace,
  );
  const asked = operations.flatMap(({ request }) =>
    (request.kind === "claim" || request.kind === "complete") && request.retentionMs !== undefined
      ? [request.retentionMs]
      : [],
  );
  return Math.min(keyRetentionMs, ...changes.map((change) => change.keyRetentionMs), ...asked);
}

function ungranted(effects: readonly Effect[], operations: readonly Operation[]): string[] {
  const strange = effects.filter(({ token }) => grantOf(token, operations) === undefined);
  return strange.map(({ token }) => `an effect by token ${token}, which was never granted`);
}

function missing(effects: readonly Effect[], operations: readonly Operation[]): string[] {
  return operations.flatMap(({ id, request, answer }) => {
    if (request.kind !== "complete" || request.result.isFailure || answer.kind !== "stored") return [];
    const hadOne = effects.some(({ token }) => token <= request.token);
    return hadOne ? [] : [`${id}: completed without an effect`];
  });
}

/** When holders may lose a key. */
interface Terms extends NamespacePolicy {
  readonly clockMoves: readonly ClockMove[];
}

function doubled(effects: readonly Effect[], operations: readonly Operation[], policy: Terms): string[] {
  const inOrder = effects.toSorted((a, b) => a.token - b.token);
  return inOrder.flatMap((later, index) => {
    const earlier = inOrder[index - 1];
    if (earlier === undefined) return [];
    if (earlier.token === later.token) return [`two effects by token ${later.token}`];
    if (mayHaveLostKey(earlier.token, later.token, operations, policy)) return [];
    return [
      `an effect by token ${later.token} after one by ${earlier.token}, whose holder had not lost the key`,
    ];
  });
}

/** Returns whether the second effect is allowed: the earlier holder may have lost the key. */
function mayHaveLostKey(
  earlier: number,
  later: number,
  operations: readonly Operation[],
  policy: Terms,
): boolean {
  const before = grantOf(earlier, operations);
  const after = grantOf(later, operations);
  // `ungranted` reports an effect by a token that was never granted.
  if (before === undefined || after === undefined) return true;
  const between = operations.filter(
    (operation) =>
      operation.invokedAtMs <= after.returnedAtMs && operation.returnedAtMs >= before.invokedAtMs,
  );
  const followedMs = retentionFollowedMs(before.invokedAtMs, after.returnedAtMs, policy.clockMoves);
  const wasForgotten = Math.max(after.returnedAtMs, followedMs) >= before.invokedAtMs + policy.keyRetentionMs;
  if (wasForgotten || between.some(isByAdministrator)) return true;
  if (between.some((operation) => isSettledBy(operation, earlier, after))) return false;
  const mayBeReclaimed =
    policy.onLeaseExpiry === "RECLAIM" ||
    between.some(({ request }) => request.kind === "claim" && request.acceptAmbiguous === true);
  const held = range(before.invokedAtMs, after.returnedAtMs);
  const untilMs = databaseClock(held, policy.clockMoves).to;
  return mayBeReclaimed && untilMs >= earliestLeaseEndMs(before, earlier, between, policy);
}

function isByAdministrator(operation: Operation): boolean {
  const { kind } = operation.request;
  return (kind === "forget" || kind === "adminRelease") && operation.answer.kind !== "refused";
}

/** Returns whether the token's claim was completed or released before the next claim was invoked. */
function isSettledBy({ request, answer, returnedAtMs }: Operation, token: number, next: Operation): boolean {
  if (request.kind !== "complete" && request.kind !== "release") return false;
  const isOk = answer.kind === "stored" || answer.kind === "ok";
  return isOk && request.token === token && returnedAtMs < next.invokedAtMs;
}

function earliestLeaseEndMs(
  grant: Operation,
  token: number,
  operations: readonly Operation[],
  { defaultLeaseMs }: NamespacePolicy,
): number {
  const claimLeaseMs = (grant.request.kind === "claim" ? grant.request.leaseMs : undefined) ?? defaultLeaseMs;
  const ends = operations.flatMap((operation) => {
    const { request, invokedAtMs } = operation;
    if (request.kind !== "extendLease" || request.token !== token || operation.answer.kind !== "ok")
      return [];
    return [invokedAtMs + (request.leaseMs ?? claimLeaseMs)];
  });
  return Math.max(grant.invokedAtMs + claimLeaseMs, ...ends);
}

/**
 * Returns the first claim that may have been granted the token: the first one that was answered with it, or an earlier one
 * with its claim id whose reply was lost, since when the lease then runs.
 */
function grantOf(token: number, operations: readonly Operation[]): Operation | undefined {
  const [answered] = operations
    .filter(({ answer }) => answer.kind === "claimed" && answer.token === token)
    .toSorted(byInvocation);
  if (answered === undefined) return undefined;
  const [lost] = operations.filter((operation) => isLostRepeat(operation, answered)).toSorted(byInvocation);
  if (lost === undefined || lost.invokedAtMs > answered.invokedAtMs) return answered;
  return { ...lost, returnedAtMs: answered.returnedAtMs };
}

function isLostRepeat({ request, answer }: Operation, answered: Operation): boolean {
  if (request.kind !== "claim" || answered.request.kind !== "claim" || answer.kind !== "unknown")
    return false;
  return request.claimId !== undefined && request.claimId === answered.request.claimId;
}

function byInvocation(a: Operation, b: Operation): number {
  return a.invokedAtMs - b.invokedAtMs;
}

/**
 * A provider with two steps. `open` makes a token the only one that may charge, unless a higher one came
 * before, and returns whether the key was charged already. So a holder that lost its lease is refused, and
 * its successor finds the effect.
 */
export class FencedProvider {
  readonly effects: Effect[] = [];
  readonly #highest = new Map<string, number>();

  open(record: RecordName, token: number): "open" | "charged" | "superseded" {
    const name = nameOf(record);
    if (token < (this.#highest.get(name) ?? 0)) return "superseded";
    this.#highest.set(name, token);
    return this.effects.some((effect) => nameOf(effect) === name) ? "charged" : "open";
  }

  /** Charges; returns whether it did. */
  charge(record: RecordName, token: number, atMs: number): boolean {
    if (this.#highest.get(nameOf(record)) !== token) return false;
    this.effects.push({ tenant: record.tenant, namespace: record.namespace, key: record.key, token, atMs });
    return true;
  }
}
