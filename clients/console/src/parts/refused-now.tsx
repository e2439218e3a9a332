import type { RefusedNow } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { callerWords, causeOf, limitWords } from "@onceward/words/refusals";
import { asTitle, formatCount } from "../format/quantity.ts";
import { type Columns, DataTable } from "./data-table.tsx";

const COLUMNS: Columns<RefusedNow> = [
  ["Why", (each) => asTitle(causeOf(each).phrase)],
  ["Operations", ({ operations }) => formatCount(operations), "number"],
  ["API key", callerWords],
  ["Namespace", ({ namespace }) => namespace || "Without one"],
  ["Limit", (each) => limitWords(each) || "–"],
];

/** Who was refused in the last minute, why, by which limit, and what to do, unless the screen says that elsewhere (`isAdvised`). */
export function RefusedNowTable(props: { refused: readonly RefusedNow[]; isAdvised?: true }) {
  const { refused, isAdvised } = props;
  return (
    <DataTable
      caption="Refused in the last minute, by API key"
      rows={refused}
      rowKey={({ namespace, reason, actor }) => `${reason} ${actor} ${namespace}`}
      columns={isAdvised ? COLUMNS : [...COLUMNS, ["What to do", (each) => causeOf(each).remedy]]}
    />
  );
}
