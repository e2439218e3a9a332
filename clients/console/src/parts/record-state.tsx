import { type Record, Record_State } from "@onceward/gen/onceward/v1/record_pb.ts";
import { leaseOf } from "@onceward/words/record-lease";
import { type Mark, StateMark } from "./state-mark.tsx";
import { useNow } from "./time.tsx";

/** Shows the state of a record. */
export function RecordStateMark({ record }: { readonly record: Record }) {
  const now = useNow();
  const isLapsed = record.state === Record_State.IN_PROGRESS && leaseOf(record, now) !== "held";
  if (isLapsed) return <StateMark tone="quiet" word="lapsed" />;
  return <StateMark {...(MARKS[record.state] ?? MARKS[Record_State.UNSPECIFIED])} />;
}

const MARKS: Readonly<globalThis.Record<Record_State, Mark>> = {
  [Record_State.UNSPECIFIED]: { tone: "quiet", word: "unknown" },
  [Record_State.IN_PROGRESS]: { tone: "busy", word: "in progress" },
  [Record_State.COMPLETED]: { tone: "good", word: "completed" },
  [Record_State.RELEASED]: { tone: "quiet", word: "released" },
  [Record_State.AMBIGUOUS]: { tone: "attention", word: "ambiguous" },
};
