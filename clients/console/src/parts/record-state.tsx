import { type Record, Record_State } from "@onceward/gen/onceward/v1/record_pb.ts";
import { leaseOf } from "./record-lease.ts";
import { StateMark } from "./state-mark.tsx";
import { useNow } from "./time.tsx";

/** Shows the state of a record. */
export function RecordStateMark({ record }: { readonly record: Record }) {
  const now = useNow();
  switch (record.state) {
    case Record_State.IN_PROGRESS:
      return leaseOf(record, now) === "held" ? (
        <StateMark tone="busy">in progress</StateMark>
      ) : (
        <StateMark tone="quiet">lapsed</StateMark>
      );
    case Record_State.COMPLETED:
      return <StateMark tone="good">completed</StateMark>;
    case Record_State.RELEASED:
      return <StateMark tone="quiet">released</StateMark>;
    case Record_State.AMBIGUOUS:
      return <StateMark tone="attention">ambiguous</StateMark>;
    default:
      return <StateMark tone="quiet">unknown</StateMark>;
  }
}
