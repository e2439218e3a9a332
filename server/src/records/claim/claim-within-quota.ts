import type { Admission, SettleRecord } from "../../access/admission.ts";
import { statementDeadline } from "../../access/authority.ts";
import type { Call } from "../../access/call.ts";
import { mapSettled, mapTogether, Rejected, type Settled } from "../../domain/operation.ts";
import type { Principal } from "../../domain/tenant.ts";
import { beginsOperation, type ClaimCommand, type ClaimOutcome } from "../record.ts";
import type { RecordStore } from "../record-store.ts";

/** A claim with room for a record, and the function that uses or returns that room. */
interface Admitted {
  readonly command: ClaimCommand;
  readonly settle: SettleRecord;
}

/** Reserves room for a record; undefined if claims in flight have reserved the rest of the tenant's quota. */
export type AdmitRecord = (principal: Principal, namespace: string) => SettleRecord | undefined;

/**
 * Executes claims of a tenant that has a quota of records; each settles on its own. Room for a record is reserved before the
 * claim, and returned if the claim added no record. Where other claims in flight have reserved the rest of the quota, a claim of
 * an existing key is executed without room: it adds no record.
 */
export async function claimWithinQuota(
  {
    records,
    admission,
    admit,
  }: {
    readonly records: Pick<RecordStore, "claim" | "read">;
    readonly admission: Admission;
    readonly admit: AdmitRecord;
  },
  commands: readonly ClaimCommand[],
  call: Call,
): Promise<readonly Settled<ClaimOutcome>[]> {
  const deadline = statementDeadline(call);
  const reserved = mapSettled(commands, (command) => ({
    command,
    settle: admit(call.principal, command.id.namespace),
  }));
  const withoutRoom = reserved.flatMap((each) =>
    each instanceof Rejected || each.settle !== undefined ? [] : [each.command.id],
  );
  const found = withoutRoom.length === 0 ? [] : await records.read(withoutRoom, deadline);
  let next = 0;
  const admitted = mapSettled(reserved, ({ command, settle }): Admitted => {
    if (settle !== undefined) return { command, settle };
    const record = found[next++];
    if (record instanceof Rejected) throw record.error;
    if (record === undefined) admission.refuseRecord(call.principal, command.id.namespace);
    return { command, settle: admission.expectRecord(call.principal) };
  });
  return await mapTogether(admitted, async (each) => {
    let outcomes: readonly Settled<ClaimOutcome>[] = [];
    try {
      outcomes = await records.claim(
        each.map(({ command }) => command),
        deadline,
      );
    } finally {
      each.forEach(({ settle }, index) => {
        settle(isNewRecord(outcomes[index]));
      });
    }
    return outcomes;
  });
}

/**
 * Whether a claim added a record. An expired record that the sweep has not deleted counts, too: the next count of the tenant's
 * records corrects it.
 */
function isNewRecord(outcome: Settled<ClaimOutcome> | undefined): boolean {
  if (outcome === undefined || outcome instanceof Rejected) return false;
  return beginsOperation(outcome);
}
