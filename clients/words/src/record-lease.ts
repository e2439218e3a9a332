import { timestampMs } from "@bufbuild/protobuf/wkt";
import { Record_State, type RecordMessage } from "@onceward/client/proto";

/** The newest claim of a record: held under a lease, lapsed (the next claim takes it over), ambiguous, or settled. */
export type Lease = "held" | "lapsed" | "ambiguous" | "settled";

/** Returns what became of a record's newest lease. The service says IN_PROGRESS also after it under RECLAIM. */
export function leaseOf(
  { state, leaseExpiresAt }: Pick<RecordMessage, "state" | "leaseExpiresAt">,
  now: Date,
): Lease {
  switch (state) {
    case Record_State.IN_PROGRESS:
      return leaseExpiresAt !== undefined && timestampMs(leaseExpiresAt) <= now.getTime() ? "lapsed" : "held";
    case Record_State.AMBIGUOUS:
      return "ambiguous";
    default:
      return "settled";
  }
}

/** The part of the time for which a key is kept in which it ends soon: of 72 h, 14. */
const LAST_PART = 0.2;

/** Returns whether a record's retention ends soon: the next claim after it is granted, although no one decided about an ambiguous one. */
export function endsSoon(
  { claimedAt, expiresAt }: Pick<RecordMessage, "claimedAt" | "expiresAt">,
  now: Date,
): boolean {
  if (claimedAt === undefined || expiresAt === undefined) return false;
  const endMs = timestampMs(expiresAt);
  return endMs - now.getTime() < (endMs - timestampMs(claimedAt)) * LAST_PART;
}

/** Returns, in a sentence or two, what a record's state means for the next claim of its key. */
export function describeLease(record: RecordMessage, now: Date): string {
  switch (leaseOf(record, now)) {
    case "held":
      return "A caller holds the claim. Other claims of the key wait until it is settled, or its lease ends.";
    case "lapsed":
      return "The lease ended without an answer. The next claim takes the key over.";
    case "ambiguous":
      return (
        "The lease ended, and it is unknown whether the effect happened. Claims are refused until a person decides, or the key's retention ends: find out whether it happened, and record the answer." +
        (endsSoon(record, now) ? " The retention ends soon." : "")
      );
    case "settled":
      return record.state === Record_State.COMPLETED
        ? "The operation is done. Every duplicate gets the result while it is kept."
        : "The claim was given up unfinished. The next claim gets the key.";
  }
}
