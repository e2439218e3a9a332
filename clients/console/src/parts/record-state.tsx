import { type Record, Record_State } from "@onceward/gen/onceward/v1/record_pb.ts";
import { leaseOf } from "@onceward/words/record-lease";
import { StateMark } from "./state-mark.tsx";
import { useNow } from "./time.tsx";

/** Shows the state of a record. */
export function RecordStateMark({ record }: { readonly record: Record }) {
  const now = useNow();
  switch (record.state) {
    case Record_State.IN_PROGRESS:
      return leaseOf(record, now) === "held" ? (
        <StateMark tone="busy" word="in progress" />
      ) : (
        <StateMark tone="quiet" word="lapsed" />
      );
    case Record_State.COMPLETED:
      return <StateMark tone="good" word="completed" />;
    case Record_State.RELEASED:
      return <StateMark tone="quiet" word="released" />;
    case Record_State.AMBIGUOUS:
      return <StateMark tone="attention" word="ambiguous" />;
    default:
      return <StateMark tone="quiet" word="unknown" />;
  }
}
