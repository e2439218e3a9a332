import type { Admission } from "../../access/admission.ts";
import { expiredInQueue, loadPolicies } from "../../access/authority.ts";
import type { Call } from "../../access/call.ts";
import { Rejected, type Settled } from "../../domain/operation.ts";
import { isRefusal, Refusal } from "../../domain/refusal.ts";
import type { ClaimRequest } from "../../gen/onceward/v1/idempotency_pb.ts";
import type { ClaimCommand, ClaimOutcome } from "../record.ts";
import type { AdmitRecord } from "./claim-within-quota.ts";
import { parseClaim } from "./messages.ts";
import type { Waiters } from "./waiters.ts";

/** Decides claims; `admit` admits those that reach Postgres. */
export type Decide = (
  commands: readonly Settled<ClaimCommand>[],
  call: Call,
  admit: AdmitRecord,
) => Promise<readonly Settled<ClaimOutcome>[]>;

/** A claim, the call for which it was decided, and its outcome. */
export interface Decision {
  readonly command: ClaimCommand;
  readonly call: Call;
  readonly outcome: Settled<ClaimOutcome>;
}

/**
 * A wait ends before the call's deadline, so that the last decision and the reply still arrive in time: by a tenth of the time
 * that is left, which is bounded because a busy machine is late by the same time with every deadline.
 */
const REPLY_MARGIN = { share: 0.1, minMs: 250, maxMs: 1000 };

/** Returns when a wait of the call ends, in milliseconds of `performance.now()`. */
export function waitEndMs({ atMs }: Call, waitMs: number): number {
  const { share, minMs, maxMs } = REPLY_MARGIN;
  const nowMs = performance.now();
  const marginMs = Math.min(Math.max((atMs - nowMs) * share, minMs), maxMs);
  return Math.min(nowMs + waitMs, atMs - marginMs);
}

/**
 * Waits until `untilMs` while the claim's record is in progress, and decides the claim again whenever the record may have
 * resolved, or the principal expired first. Each decision is that of a new claim: its principal, its quotas and its policy are
 * the current ones.
 */
export async function decideUntil(
  untilMs: number,
  request: ClaimRequest,
  first: Decision,
  {
    waiters,
    admission,
    decide,
  }: { readonly waiters: Waiters; readonly admission: Admission; readonly decide: Decide },
): Promise<Decision> {
  let decision = first;
  let admit: AdmitRecord = admission.admitRecord;
  for (;;) {
    const { outcome, command, call } = decision;
    if (!(outcome instanceof Rejected) && outcome.kind === "inProgress") {
      const leftMs = untilMs - performance.now();
      if (leftMs <= 0) return decision;
      await waiters.wait(command.id, leftMs, call.signal, () => checkPrincipal(request, call));
      // The record exists, so that no quota of records may refuse the claim.
      admit = admission.expectRecord;
    } else if (!expiredInQueue(outcome, call)) return decision;
    const current = await call.again();
    admission.admitOperation(current.principal, request.namespace);
    await loadPolicies([request.namespace], current);
    const again = parseClaim(request, current.principal);
    const outcomes = await decide([again], current, admit);
    decision = { command: again, call: current, outcome: outcomes[0] as Settled<ClaimOutcome> };
  }
}

/**
 * Checks whether a waiting claim would be accepted if it arrived now. An error that can be retried is ignored, because the
 * claim is authorized again when it is woken; but a move ends the wait, because the record will not resolve here.
 *
 * @throws Refusal as for a new call.
 */
async function checkPrincipal(request: ClaimRequest, call: Call): Promise<void> {
  try {
    const current = await call.again();
    if (current.principal === call.principal) return;
    await loadPolicies([request.namespace], current);
    parseClaim(request, current.principal);
  } catch (error) {
    const endsWait =
      isRefusal(error, "TENANT_MOVING") || !(error instanceof Refusal) || error.retryAfterMs === undefined;
    if (endsWait) throw error;
  }
}
