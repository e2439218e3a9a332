import { type Record, Record_State } from "@onceward/gen/onceward/v1/record_pb.ts";
import { leaseOf } from "../../parts/record-lease.ts";

/** Returns what a record's state means for the next claim of its key. */
export function situationOf(record: Record, now: Date): string {
  switch (leaseOf(record, now)) {
    case "held":
      return "A caller holds the claim. Other claims of the key wait until it is settled, or its lease ends.";
    case "lapsed":
      return "The lease ended without an answer. The next claim takes the key over.";
    case "ambiguous":
      return "The lease ended, and it is unknown whether the effect happened. Claims are refused until a person decides: find out, then complete or release it.";
    case "settled":
      return record.state === Record_State.COMPLETED
        ? "The operation is done. Every duplicate gets the result while it is kept."
        : "The claim was given up unfinished. The next claim gets the key.";
  }
}
