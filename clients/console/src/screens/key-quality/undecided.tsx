import { describeInsufficientData } from "@onceward/decode/insufficient-data.ts";
import type { UndecidedKeyDefect } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import common from "../../styles/common.module.css";
import { defectTitle } from "./quality-words.ts";

/** Lists the defects that can be neither suspected nor ruled out, and what is missing. */
export function Undecided({ undecided }: { readonly undecided: readonly UndecidedKeyDefect[] }) {
  if (undecided.length === 0) return "Everything checked";
  return (
    <ul className={common.plain}>
      {undecided.map(({ defect, insufficient }) => (
        <li key={defect}>
          {defectTitle(defect)}:{" "}
          <span className={common.quiet}>{insufficient && describeInsufficientData(insufficient)}</span>
        </li>
      ))}
    </ul>
  );
}
