import type { RefusedNow } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { callerWords, causeOf, limitWords } from "@onceward/words/refusals";
import { asTitle, formatCount } from "../format/quantity.ts";
import { DataTable } from "./data-table.tsx";

/** Who was refused in the last minute, why, by which limit, and what to do. */
export function RefusedNowTable({ refused }: { readonly refused: readonly RefusedNow[] }) {
  return (
    <DataTable
      caption="Refused in the last minute, by API key"
      rows={refused}
      rowKey={({ namespace, reason, actor }) => `${reason} ${actor} ${namespace}`}
      columns={[
        ["Why", (each) => asTitle(causeOf(each).phrase)],
        ["Operations", ({ operations }) => formatCount(operations), "number"],
        ["API key", callerWords],
        ["Namespace", ({ namespace }) => namespace || "Without one"],
        ["Limit", (each) => limitWords(each) || "–"],
        ["What to do", (each) => causeOf(each).remedy],
      ]}
    />
  );
}
