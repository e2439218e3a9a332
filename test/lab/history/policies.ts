import { LATE_KEY_GRACE_MS } from "./late-keys.ts";
import type {
  History,
  NamespacePolicy,
  Operation,
  RecordName,
  Restore,
  RetentionChange,
  Retentions,
} from "./operation.ts";
import { type Range, range } from "./state.ts";

/** How stale a replica's policies and cached copies may be. */
export const MAX_STALENESS_MS = 10_000;

/** The ranges of the retentions that may have been stamped on a record. */
export interface RetentionRanges {
  readonly key: Range;
  readonly result: Range;
  readonly failure: Range;
}

/** The policy of a namespace at every moment of a history. */
export interface PolicyBook {
  readonly policy: NamespacePolicy;
  /**
   * Returns the retentions that may have been stamped by a claim during its call, or later if its outcome is
   * unknown.
   */
  retentionsFor(operation: Operation): RetentionRanges;
  readonly changes: readonly RetentionChange[];
  readonly restores: readonly Restore[];
}

/** Returns the policies of a namespace. @throws Error if the history has none for it. */
export function policyBook(history: History, tenant: string, namespace: string): PolicyBook {
  const here = (entry: { readonly tenant: string; readonly namespace: string }) =>
    entry.tenant === tenant && entry.namespace === namespace;
  const policy = history.policies.find(here);
  if (policy === undefined) throw new Error(`the history has no policy for ${tenant}/${namespace}`);
  const changes = (history.retentionChanges ?? []).filter(here).sort((a, b) => a.invokedAtMs - b.invokedAtMs);
  const keptLongerMs = policy.refusesLateKeys ? LATE_KEY_GRACE_MS : 0;
  return {
    policy,
    changes,
    restores: history.restores ?? [],
    retentionsFor({ invokedAtMs, returnedAtMs }) {
      const versions: Retentions[] = [];
      [policy, ...changes].forEach((version, index) => {
        const since = index === 0 ? Number.NEGATIVE_INFINITY : (changes[index - 1]?.invokedAtMs ?? 0);
        const until = (changes[index]?.returnedAtMs ?? Number.POSITIVE_INFINITY) + MAX_STALENESS_MS;
        if (since <= returnedAtMs && invokedAtMs <= until) versions.push(version);
      });
      // A result that is kept for as long as its key stays so.
      const stamped = (version: Retentions, retentionMs: number) =>
        retentionMs === version.keyRetentionMs ? retentionMs + keptLongerMs : retentionMs;
      return {
        key: spanOf(versions.map((version) => version.keyRetentionMs + keptLongerMs)),
        result: spanOf(versions.map((version) => stamped(version, version.resultRetentionMs))),
        failure: spanOf(versions.map((version) => stamped(version, version.failureRetentionMs))),
      };
    },
  };
}

/** Returns the changes that are applied to existing records, as operations on one record. */
export function restampsOf(book: PolicyBook, key: string): Operation[] {
  return book.changes.flatMap((change, index) => {
    const { tenant, namespace, invokedAtMs, appliedToExistingAtMs: returnedAtMs } = change;
    if (returnedAtMs === undefined) return [];
    const { keyRetentionMs, resultRetentionMs, failureRetentionMs } = change;
    const request = { kind: "restamp", keyRetentionMs, resultRetentionMs, failureRetentionMs } as const;
    const answer = Number.isFinite(returnedAtMs)
      ? ({ kind: "ok" } as const)
      : ({ kind: "unknown", reason: "its end was not seen" } as const);
    const id = `restamp-${index}-${key}`;
    return [
      {
        id,
        client: "admin",
        replica: "",
        tenant,
        namespace,
        key,
        request,
        answer,
        invokedAtMs,
        returnedAtMs,
      },
    ];
  });
}

/** Returns the copies and restores of the database that may concern these operations of a record, as operations on it. */
export function restoresOf(
  restores: readonly Restore[],
  record: RecordName,
  own: readonly Operation[],
): Operation[] {
  return restores.flatMap((restore, index): Operation[] => {
    const { copiedFromMs, copiedToMs, restoredFromMs, restoredToMs } = restore;
    const isConcerned = own.some(
      ({ invokedAtMs, returnedAtMs }) => invokedAtMs <= restoredToMs && returnedAtMs >= copiedFromMs,
    );
    if (!isConcerned) return [];
    const event = { ...record, client: "restore", replica: "", answer: { kind: "ok" } } as const;
    const copied = { invokedAtMs: copiedFromMs, returnedAtMs: copiedToMs };
    const restored = { invokedAtMs: restoredFromMs, returnedAtMs: restoredToMs };
    return [
      { ...event, ...copied, id: `copy-${index}-${record.key}`, request: { kind: "copy" } },
      { ...event, ...restored, id: `restore-${index}-${record.key}`, request: { kind: "restore" } },
    ];
  });
}

function spanOf(values: readonly number[]): Range {
  return range(Math.min(...values), Math.max(...values));
}
