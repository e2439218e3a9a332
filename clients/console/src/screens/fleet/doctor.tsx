import {
  type DiagnoseResponse,
  type Finding,
  Finding_Severity,
} from "@onceward/gen/onceward/v1/operator_pb.ts";
import { asTitle, formatNoun } from "../../format/quantity.ts";
import { CliHint, Runbook } from "../../parts/copy-button.tsx";
import { Facts } from "../../parts/facts.tsx";
import { Unanswered } from "../../parts/list-states.tsx";
import { type Mark, StateMark } from "../../parts/state-mark.tsx";
import common from "../../styles/common.module.css";
import styles from "../../styles/screens.module.css";
import type { useDiagnosis } from "./fleet-count.tsx";

/** Doctor's findings. The last part of its screen: how long it gets is not known before. */
export function Doctor({ diagnosis }: { readonly diagnosis: ReturnType<typeof useDiagnosis> }) {
  const { data, isFetching, refetch } = diagnosis;
  return (
    <section aria-labelledby="doctor">
      <h2 id="doctor">Doctor</h2>
      {data === undefined ? (
        <Unanswered query={diagnosis} rows={6} />
      ) : (
        <>
          <p className={common.row}>
            <span role="status">{summaryOf(data)}.</span>
            <button type="button" disabled={isFetching} onClick={() => void refetch()}>
              {isFetching ? "Examining" : "Examine again"}
            </button>
          </p>
          <Findings of={data} />
          <CliHint command="onceward operator doctor" />
        </>
      )}
    </section>
  );
}

/** An id of a finding or a check as a phrase: "hot_share_low" is "Hot share low". */
function titleOf({ id }: Pick<Finding, "id">): string {
  return asTitle(id.replaceAll("_", " "));
}

function Findings({ of: { findings, passed, skipped } }: { readonly of: DiagnoseResponse }) {
  return (
    <>
      {findings.length > 0 && (
        <ul className={`${common.plain} ${styles.findings}`} aria-label="Findings">
          {findings.map((finding) => (
            <li key={`${finding.id} ${finding.summary}`} className={common.card}>
              <FindingText finding={finding} />
            </li>
          ))}
        </ul>
      )}
      <details>
        <summary>What was examined</summary>
        <Facts
          of={{
            "Without a finding": passed.join(", ") || "no check",
            Skipped: skipped.length > 0 && `${skipped.join(", ")}: Postgres does not answer`,
          }}
        />
      </details>
    </>
  );
}

const SEVERITIES: Readonly<Record<Finding_Severity, Mark>> = {
  [Finding_Severity.UNSPECIFIED]: { tone: "quiet", word: "Unknown severity" },
  [Finding_Severity.INFO]: { tone: "quiet", word: "Info" },
  [Finding_Severity.WARNING]: { tone: "attention", word: "Warning" },
  [Finding_Severity.ERROR]: { tone: "bad", word: "Error" },
};

/** A severity of a later version is unknown. */
function markOf({ severity }: Finding): Mark {
  return SEVERITIES[severity] ?? SEVERITIES[Finding_Severity.UNSPECIFIED];
}

function FindingText({ finding }: { readonly finding: Finding }) {
  const { summary, advice, runbook } = finding;
  return (
    <>
      <h3>
        <StateMark {...markOf(finding)} /> {titleOf(finding)}
      </h3>
      <p>{summary}</p>
      <p>{advice}</p>
      <p className={common.quiet}>
        <Runbook section={runbook} />
      </p>
    </>
  );
}

function summaryOf({ findings, passed }: DiagnoseResponse): string {
  const count = (severity: Finding_Severity) =>
    findings.filter((finding) => finding.severity === severity).length;
  return [
    formatNoun(count(Finding_Severity.ERROR), "error", "errors"),
    formatNoun(count(Finding_Severity.WARNING), "warning", "warnings"),
    formatNoun(count(Finding_Severity.INFO), "info", "infos"),
    `${formatNoun(passed.length, "check", "checks")} found nothing`,
  ].join(", ");
}
