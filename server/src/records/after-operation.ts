import type { Logger } from "pino";
import type { BatchHandler, Call } from "../access/call.ts";
import type { QuotaCause } from "../access/refusals.ts";
import { MAX_KEY_BYTES, NAMESPACE_PATTERN } from "../domain/limits.ts";
import { type OperationKind, Rejected } from "../domain/operation.ts";
import { CATALOGUE, reasonName } from "../domain/refusal.ts";
import type { ClaimCommand, ClaimOutcome, RecordId } from "./record.ts";

/** The record that a request names, as it was sent: unchecked. */
export interface NamedRecord {
  readonly namespace: string;
  readonly key: string;
}

/** Receives each operation that was answered, for the metrics and the log; `named` is undefined if the request was not read. */
export type OnOperation = (
  kind: OperationKind,
  outcome: string,
  durationMs: number,
  named: NamedRecord | undefined,
  call: Call,
) => void;

/** Returns a handler that reports the outcome of each operation, also if it is an error. */
export function counted<Request extends NamedRecord, Response>({
  kind,
  onOperation,
  outcomeOf,
  handle,
}: {
  readonly kind: OperationKind;
  readonly onOperation: OnOperation;
  /** Returns the outcome of an operation as metrics name it. */
  readonly outcomeOf: (response: Response) => string;
  readonly handle: BatchHandler<Request, Response>;
}): BatchHandler<Request, Response> {
  return async (requests, call) => {
    const all = await handle(requests, call);
    const durationMs = performance.now() - call.receivedAtMs;
    for (const [index, each] of all.entries()) {
      const request = requests[index];
      const named = request instanceof Rejected ? undefined : request;
      const outcome = each instanceof Rejected ? reasonName(each.error) : outcomeOf(each);
      onOperation(kind, outcome, durationMs, named, call);
    }
    return all;
  };
}

/** What is counted of a claim's command. */
export type CountedClaim = Pick<ClaimCommand, "id" | "fingerprint" | "retentionInForceS" | "keyCreatedAtMs">;

/** A namespace whose use is counted. */
export interface UsedNamespace {
  readonly tenantId: number;
  readonly namespace: string;
}

/** Receives what callers did, after each operation that was answered: the feature `usage` counts it. */
export interface OperationHooks {
  /** A Claim was answered at a time of the database's clock. */
  claimed(claim: CountedClaim, outcome: ClaimOutcome, atMs: number): void;
  /** A Claim was refused because the key is bound to another fingerprint, or is too old. */
  refused(of: UsedNamespace, counter: "mismatches" | "late_keys_refused"): void;
  /** A record was completed, or settled after its outcome was unknown; or an operation was refused because of a newer claim. */
  count(of: UsedNamespace, counter: "completions" | "settled" | "fenced"): void;
  /** An operation or a batch was beyond a quota. The namespace is as it was sent, unchecked; empty: none was read. */
  limited(of: UsedNamespace, cause: QuotaCause, mode: "enforced" | "dry_run"): void;
  /** A Claim that `claimed` was called for took this time. */
  took(of: UsedNamespace, durationMs: number): void;
  /** A Claim got another answer than its key, or an operation on a key was refused. Not called for a granted claim. */
  declined(named: NamedRecord, outcome: string, call: Pick<Call, "principal" | "requestId">): void;
}

/** Returns hooks that call those of several features, in their order. */
export function joinHooks(all: readonly Partial<OperationHooks>[]): OperationHooks {
  const claimed = all.filter((hooks) => hooks.claimed !== undefined);
  const timed = all.filter((hooks) => hooks.took !== undefined);
  const informed = all.filter((hooks) => hooks.declined !== undefined);
  return {
    claimed(claim, outcome, atMs) {
      for (const hooks of claimed) hooks.claimed?.(claim, outcome, atMs);
    },
    refused(of, counter) {
      for (const hooks of all) hooks.refused?.(of, counter);
    },
    count(of, counter) {
      for (const hooks of all) hooks.count?.(of, counter);
    },
    limited(of, cause, mode) {
      for (const hooks of all) hooks.limited?.(of, cause, mode);
    },
    took(of, durationMs) {
      for (const hooks of timed) hooks.took?.(of, durationMs);
    },
    declined(named, outcome, call) {
      for (const hooks of informed) hooks.declined?.(named, outcome, call);
    },
  };
}

/** The outcomes that are reasons of the catalogue. */
const REFUSALS: ReadonlySet<string> = new Set(Object.keys(CATALOGUE).map((reason) => reason.toLowerCase()));

/** The outcomes of claims that got their key. */
const GRANTS: ReadonlySet<string> = new Set(["claimed", "reclaimed", "recorded"]);

/** Returns what reports each answered claim's time, and each operation that was declined, to the hooks, after `count`. */
export function createOperationReport(
  count: (kind: OperationKind, outcome: string, durationMs: number) => void,
  hooks: Pick<OperationHooks, "took" | "declined">,
): OnOperation {
  return (kind, outcome, durationMs, named, call) => {
    count(kind, outcome, durationMs);
    const { principal } = call;
    if (named === undefined || principal.role === "OPERATOR") return;
    const isRefused = REFUSALS.has(outcome);
    if (kind === "claim" && !isRefused)
      hooks.took({ tenantId: principal.tenant.id, namespace: named.namespace }, durationMs);
    if (isRefused || (kind === "claim" && !GRANTS.has(outcome))) hooks.declined(named, outcome, call);
  };
}

/** Enough to find an operation of a tenant whose calls are refused now and then. */
const MAX_REFUSALS_OF_TENANT = 5;
/** About 30 KiB of lines; bounds the memory of the counts, too. */
const MAX_REFUSALS = 100;
const WINDOW_MS = 1000;

/**
 * Returns a function that counts operations and logs them with their outcome, their request id and the record's name in audit events: at
 * `debug` each one, at `info` the refused ones, at most 5 of a tenant and 100 in all per second. The next line after some that
 * were not logged has their number, `unlogged`. Logging costs nothing for an operation that is not refused, unless `debug` is on.
 */
export function createOperationLog({
  count,
  log,
  recordTarget,
}: {
  /** Receives each operation before it is logged. */
  readonly count: OnOperation;
  readonly log: Logger;
  /** Names a record without its key. */
  readonly recordTarget: (id: RecordId) => string;
}): OnOperation {
  let windowEndsAtMs = 0;
  let logged = 0;
  let unlogged = 0;
  const loggedOf = new Map<number, number>();

  /** Whether one more refusal of a tenant is logged. */
  function hasRoom(tenantId: number): boolean {
    const nowMs = performance.now();
    if (nowMs >= windowEndsAtMs) {
      windowEndsAtMs = nowMs + WINDOW_MS;
      logged = 0;
      loggedOf.clear();
    }
    const ofTenant = loggedOf.get(tenantId) ?? 0;
    if (logged >= MAX_REFUSALS || ofTenant >= MAX_REFUSALS_OF_TENANT) return false;
    logged++;
    loggedOf.set(tenantId, ofTenant + 1);
    return true;
  }

  /** Returns the name of the record; undefined if the request names no possible one. */
  function targetOf({ namespace, key }: NamedRecord, tenantId: number): string | undefined {
    if (!NAMESPACE_PATTERN.test(namespace) || Buffer.byteLength(key) > MAX_KEY_BYTES) return undefined;
    return recordTarget({ tenantId, namespace, key });
  }

  return (kind, outcome, durationMs, named, call) => {
    count(kind, outcome, durationMs, named, call);
    const atDebug = log.isLevelEnabled("debug");
    if (!atDebug && !REFUSALS.has(outcome)) return;
    const { principal } = call;
    if (principal.role === "OPERATOR" || !log.isLevelEnabled("info")) return;
    const { id, name: tenant } = principal.tenant;
    if (!atDebug && !hasRoom(id)) {
      unlogged++;
      return;
    }
    const record = named && targetOf(named, id);
    const { requestId } = call;
    const line = { kind, outcome, durationMs, requestId, tenant, record, ...(unlogged > 0 && { unlogged }) };
    unlogged = 0;
    if (REFUSALS.has(outcome)) log.info(line, "operation refused");
    else log.debug(line, "operation");
  };
}
