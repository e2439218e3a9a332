import { checkHistory, type Verdict } from "./check.ts";
import type {
  AdminRequest,
  Answer,
  ClaimRequest,
  ClockMove,
  History,
  NamespacePolicy,
  Operation,
  Request,
  Restore,
  RetentionChange,
} from "./operation.ts";

/**
 * Short forms for histories of one key: `claim(0, 10, granted(1))` was invoked at 0 ms, returned at 10 ms and
 * was granted token 1. The lease is 1 s unless given; the retention is a minute, and the result's half of it.
 */

/** The return of a call of unknown outcome. */
export const LOST = Number.POSITIVE_INFINITY;

export const IN_PROGRESS: Answer = { kind: "inProgress" };
export const RECORDED: Answer = { kind: "recorded" };
export const AMBIGUOUS: Answer = { kind: "ambiguous" };
export const RESULT_GONE: Answer = { kind: "completed" };
export const NOTHING_THERE: Answer = { kind: "absent" };
export const OK: Answer = { kind: "ok" };
export const STORED: Answer = { kind: "stored", alreadyCompleted: false };
export const STORED_BEFORE: Answer = { kind: "stored", alreadyCompleted: true };

const POLICY: NamespacePolicy = {
  tenant: "acme",
  namespace: "charges",
  defaultLeaseMs: 1000,
  onLeaseExpiry: "RECLAIM",
  keyRetentionMs: 60_000,
  resultRetentionMs: 30_000,
  failureRetentionMs: 10_000,
};

/** The answer of a granted claim. */
export function granted(token: number, attempt?: number): Answer {
  return { kind: "claimed", token, ...(attempt !== undefined && { attempt }) };
}

/** The answer of a claim that replays a result. */
export function replayed(hash: string): Answer {
  return { kind: "completed", hash };
}

/** The answer of a definite refusal. */
export function refused(reason: string): Answer {
  return { kind: "refused", reason };
}

/** The answer of a lookup that found a record. */
export function seen(
  state: "inProgress" | "completed" | "released" | "ambiguous",
  token: number,
  more: { readonly hash?: string; readonly fingerprint?: string } = {},
): Answer {
  return { kind: "record", state, token, ...more };
}

/** A claim; `details` are the rest of its request. */
export function claim(
  from: number,
  to: number,
  answer?: Answer,
  details: Omit<ClaimRequest, "kind"> = {},
): Operation {
  return operation(from, to, { kind: "claim", ...details }, answer);
}

/** A Complete with a result of that hash. */
export function complete(
  from: number,
  to: number,
  token: number,
  hash: string,
  answer: Answer = STORED,
  details: { readonly retentionMs?: number; readonly isFailure?: boolean } = {},
): Operation {
  const { retentionMs, isFailure = false } = details;
  const result = { hash, isFailure };
  const request = {
    kind: "complete",
    token,
    result,
    ...(retentionMs !== undefined && { retentionMs }),
  } as const;
  return operation(from, to, request, answer);
}

/** A Release. */
export function release(
  from: number,
  to: number,
  token: number,
  answer: Answer = OK,
  details: { readonly giveBack?: boolean } = {},
): Operation {
  return operation(from, to, { kind: "release", token, ...details }, answer);
}

/** An ExtendLease, by the claim's own lease. */
export function extend(
  from: number,
  to: number,
  token: number,
  answer: Answer = OK,
  details: { readonly begin?: boolean } = {},
): Operation {
  return operation(from, to, { kind: "extendLease", token, ...details }, answer);
}

/** A Lookup. */
export function lookup(from: number, to: number, answer: Answer): Operation {
  return operation(from, to, { kind: "lookup" }, answer);
}

/** An administrator's change. */
export function admin(from: number, to: number, request: AdminRequest, answer: Answer = OK): Operation {
  return operation(from, to, request, answer);
}

/** Returns the calls as the items of one batch, in this order. */
export function batch(id: string, ...operations: readonly Operation[]): Operation[] {
  return operations.map((item, index) => ({ ...item, batch: { id, index } }));
}

/** Returns the operations of one key as a history. */
export function scenario(
  operations: readonly Operation[],
  policy: Partial<NamespacePolicy> = {},
  retentionChanges: readonly RetentionChange[] = [],
  clockMoves: readonly ClockMove[] = [],
): History {
  return {
    operations: operations.map((item, index) => ({ ...item, id: `#${index + 1}` })),
    policies: [{ ...POLICY, ...policy }],
    retentionChanges,
    clockMoves,
  };
}

/** As `violated`, where late keys are refused, and the database may have been restored. */
export function violatedWithLateKeys(
  operations: readonly Operation[],
  restores: readonly Restore[] = [],
): number[] {
  return invariantsOf(checkHistory({ ...scenario(operations, { refusesLateKeys: true }), restores }));
}

/** Returns the invariants that a history violates; empty if it is legal. */
export function violated(...operations: readonly Operation[]): number[] {
  return invariantsOf(checkHistory(scenario(operations)));
}

/** As `violated`, under HOLD. */
export function violatedUnderHold(...operations: readonly Operation[]): number[] {
  return invariantsOf(checkHistory(scenario(operations, { onLeaseExpiry: "HOLD" })));
}

/** Returns the violated invariants of a verdict. @throws Error if the search ran out of its budget. */
export function invariantsOf({ violations, timeouts }: Verdict): number[] {
  if (timeouts.length > 0) throw new Error("the search ran out of its budget");
  return violations.map(({ invariant }) => invariant);
}

function operation(from: number, to: number, request: Request, answer: Answer | undefined): Operation {
  return {
    id: "",
    client: "client-1",
    replica: "replica-1",
    tenant: POLICY.tenant,
    namespace: POLICY.namespace,
    key: "order-1",
    request,
    answer: to === LOST || answer === undefined ? { kind: "unknown", reason: "NO_ANSWER" } : answer,
    invokedAtMs: from,
    returnedAtMs: to,
  };
}
