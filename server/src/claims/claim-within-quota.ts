import type { Admission, SettleRecord } from "../admission/admission.ts";
import { decisionDeadline } from "../calls/authority.ts";
import type { Call } from "../calls/call.ts";
import type { ClaimCommand, ClaimOutcome } from "../domain/claim.ts";
import type { Deadline } from "../domain/deadline.ts";
import { mapSettled, mapTogether, Rejected, type Settled } from "../domain/settled.ts";
import type { Principal } from "../domain/tenant.ts";
import type { RecordStore } from "../store/records/record-store.ts";

/** Claims for which there was room to add a record, and what takes or returns that room. */
interface Admitted {
  readonly command: ClaimCommand;
  readonly settle: SettleRecord;
}

/** Admits a claim that may add a record; undefined: claims under way have reserved what is left of the tenant's quota. */
export type AdmitRecord = (principal: Principal) => SettleRecord | undefined;

export interface QuotaOptions {
  readonly records: Pick<RecordStore, "claim" | "read">;
  readonly admission: Admission;
  readonly admit: AdmitRecord;
  /** Whether an outcome added a record. */
  readonly isNew: (outcome: ClaimOutcome) => boolean;
}

/**
 * Makes claims within the tenant's quota of records; each ends by itself, in its place. Room for a record is reserved before
 * the claim and returned if it added none. Where only claims under way have reserved what is left, a claim of a key that has a
 * record is made without: it adds none.
 */
export async function claimWithinQuota(
  { records, admission, admit, isNew }: QuotaOptions,
  commands: readonly ClaimCommand[],
  call: Call,
): Promise<readonly Settled<ClaimOutcome>[]> {
  const deadline = decisionDeadline(call);
  if (!admission.countsRecords(call.principal)) return await records.claim(commands, deadline);
  const reserved = mapSettled(commands, (command) => ({ command, settle: admit(call.principal) }));
  const withoutRoom = reserved.flatMap((each) =>
    each instanceof Rejected || each.settle !== undefined ? [] : [each.command],
  );
  const found =
    withoutRoom.length === 0
      ? []
      : await records.read(
          withoutRoom.map(({ id }) => id),
          deadline,
        );
  let next = 0;
  const admitted = mapSettled(reserved, ({ command, settle }): Admitted => {
    if (settle !== undefined) return { command, settle };
    const record = found[next++];
    if (record instanceof Rejected) throw record.error;
    if (record === undefined) admission.refuseRecord(call.principal);
    return { command, settle: admission.expectRecord(call.principal) };
  });
  return await mapTogether(admitted, (each) => claimAdmitted(records, each, deadline, isNew));
}

async function claimAdmitted(
  records: Pick<RecordStore, "claim">,
  admitted: readonly Admitted[],
  deadline: Deadline,
  isNew: QuotaOptions["isNew"],
): Promise<readonly Settled<ClaimOutcome>[]> {
  let outcomes: readonly Settled<ClaimOutcome>[] = [];
  try {
    outcomes = await records.claim(
      admitted.map(({ command }) => command),
      deadline,
    );
  } finally {
    for (const [place, { settle }] of admitted.entries()) {
      const outcome = outcomes[place];
      settle(outcome !== undefined && !(outcome instanceof Rejected) && isNew(outcome));
    }
  }
  return outcomes;
}
