import { useMutation } from "@connectrpc/connect-query";
import {
  type DiagnoseResponse,
  type Finding,
  Finding_Severity,
  OperatorService,
} from "@onceward/gen/onceward/v1/operator_pb.ts";
import { formatNoun } from "../../format/quantity.ts";
import { CliHint, Runbook } from "../../parts/copy-button.tsx";
import { Facts } from "../../parts/facts.tsx";
import { ErrorState } from "../../parts/list-states.tsx";
import { type Mark, StateMark } from "../../parts/state-mark.tsx";
import common from "../../styles/common.module.css";
import styles from "../../styles/screens.module.css";

/** Doctor's findings, when they are asked for: it examines the database, Redis and the replicas, which takes seconds. */
export function Doctor() {
  const { mutate, data, error, isPending } = useMutation(OperatorService.method.diagnose);
  return (
    <section aria-labelledby="doctor" aria-busy={isPending}>
      <h2 id="doctor">Doctor</h2>
      <p>
        Examines the database, Redis and the replicas from the replica that answers. It changes nothing, and
        takes seconds when a part does not answer.
      </p>
      <p>
        <button type="button" disabled={isPending} onClick={() => mutate({})}>
          {isPending ? "Examining" : data === undefined ? "Examine" : "Examine again"}
        </button>
      </p>
      <div role="status">{!isPending && data !== undefined && <p>{summaryOf(data)}</p>}</div>
      {error !== null && <ErrorState error={error} retry={() => mutate({})} />}
      {data !== undefined && <Diagnosis diagnosis={data} />}
      <CliHint command="onceward operator doctor" />
    </section>
  );
}

function Diagnosis({ diagnosis: { findings, passed, skipped } }: { readonly diagnosis: DiagnoseResponse }) {
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
      <Facts
        of={{
          "Found nothing": passed.join(", ") || "no check",
          Skipped: skipped.length > 0 && `${skipped.join(", ")}: Postgres does not answer`,
        }}
      />
    </>
  );
}

const SEVERITIES: Readonly<Record<Finding_Severity, Mark>> = {
  [Finding_Severity.UNSPECIFIED]: { tone: "quiet", word: "Unknown severity" },
  [Finding_Severity.INFO]: { tone: "quiet", word: "Info" },
  [Finding_Severity.WARNING]: { tone: "attention", word: "Warning" },
  [Finding_Severity.ERROR]: { tone: "bad", word: "Error" },
};

function FindingText({ finding: { id, severity, summary, advice, runbook } }: { readonly finding: Finding }) {
  return (
    <>
      <h3>
        <StateMark {...(SEVERITIES[severity] ?? SEVERITIES[Finding_Severity.UNSPECIFIED])} />{" "}
        <code>{id}</code>
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
