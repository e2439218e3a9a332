import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useSearchParams } from "wouter";
import { formatNoun } from "../../format/quantity.ts";
import { CliHint } from "../../parts/cli-hint.tsx";
import { DataTable } from "../../parts/data-table.tsx";
import { SelectField, TextField } from "../../parts/field.tsx";
import { FilterBar } from "../../parts/filter-bar.tsx";
import { Empty, ErrorState, Loading } from "../../parts/list-states.tsx";
import { StateMark, type StateTone } from "../../parts/state-mark.tsx";
import { useSession } from "../../session/session.ts";
import { Screen } from "../../shell/screen.tsx";
import {
  type Check,
  inSentence,
  NOT_ANSWERED,
  refusalCheck,
  useAmbiguousCheck,
  useDenialCheck,
  useJobCheck,
  useKeyCheck,
  useRetentionCheck,
} from "./checks.tsx";
import styles from "./home.module.css";
import { COUNTS, type HourSum, totalOf } from "./hours.ts";
import { Outcomes, OutcomesLoading } from "./outcomes.tsx";
import { type RecentHours, useRecentHours } from "./use-hours.ts";

/** The screen "Home": is anything wrong? */
export default function Home() {
  const [parameters] = useSearchParams();
  const { namespaces: allowed } = useSession();
  // A key that is limited to namespaces may not ask about all of them together.
  const namespace = parameters.get("namespace") ?? allowed[0] ?? "";
  const recent = useRecentHours(namespace);
  const checks = [
    useAmbiguousCheck(namespace),
    useRetentionCheck(namespace),
    useKeyCheck(namespace),
    refusalCheck(recent),
    useDenialCheck(),
    useJobCheck(),
  ];
  // The rows' heights are not known before: nothing moves if all of them come at once. Later changes stay in place.
  const [wasAnswered, setAnswered] = useState(false);
  const isTrafficAnswered = recent.hours !== undefined || recent.error !== undefined;
  if (!wasAnswered && isTrafficAnswered && checks.every(({ finding }) => finding !== undefined))
    setAnswered(true);
  return (
    <Screen title="Home" answer={summarize(checks)}>
      {wasAnswered ? (
        <Answers checks={checks} allowed={allowed} namespace={namespace} recent={recent} />
      ) : (
        <Loading rows={20} />
      )}
    </Screen>
  );
}

interface AnswersProps {
  readonly checks: readonly Check[];
  readonly allowed: readonly string[];
  readonly namespace: string;
  readonly recent: RecentHours;
}

function Answers({ checks, allowed, namespace, recent }: AnswersProps) {
  return (
    <>
      {recent.hours !== undefined && claimsOf(recent.hours) > 0 && <Stopped hours={recent.hours} />}
      <CheckTable checks={checks} />
      {checks.some(({ finding }) => finding?.word === NOT_ANSWERED) && <RetryFailed />}
      <h2>Traffic</h2>
      <FilterBar>
        {allowed.length > 0 ? (
          <SelectField label="Namespace" name="namespace" defaultValue={namespace}>
            {allowed.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </SelectField>
        ) : (
          <TextField label="Namespace" name="namespace" defaultValue={namespace} maxLength={63} />
        )}
      </FilterBar>
      <Traffic recent={recent} />
    </>
  );
}

function RetryFailed() {
  const queryClient = useQueryClient();
  const retry = () => queryClient.refetchQueries({ predicate: ({ state }) => state.status === "error" });
  return (
    <button type="button" onClick={() => void retry()}>
      Try again
    </button>
  );
}

function summarize(checks: readonly Check[]): string {
  const findings = checks.flatMap(({ finding }) => (finding === undefined ? [] : [finding]));
  if (findings.length < checks.length) return "Looking whether anything is wrong.";
  const problems = checks.filter(({ finding }) => finding !== undefined && RANKS[finding.tone] === 0);
  if (problems.length > 0) {
    const names = problems.map(({ name }) => inSentence(name)).join("; ");
    return `${formatNoun(problems.length, "problem", "problems")}: ${names}.`;
  }
  const unanswered = findings.filter(({ word }) => word === NOT_ANSWERED).length;
  return unanswered === 0
    ? "Nothing needs your attention."
    : `${unanswered} of ${formatNoun(checks.length, "check", "checks")} were not answered.`;
}

/** What needs a person comes first. */
const RANKS: Readonly<Record<StateTone, number>> = { bad: 0, attention: 0, busy: 1, quiet: 1, good: 2 };

/** The checks that found something, and in a line those that did not. */
function CheckTable({ checks }: { readonly checks: readonly Check[] }) {
  const rank = ({ finding }: Check) => (finding === undefined ? 1 : RANKS[finding.tone]);
  const fine = checks.filter((check) => rank(check) === RANKS.good);
  const found = checks.filter((check) => !fine.includes(check)).toSorted((a, b) => rank(a) - rank(b));
  return (
    <>
      {found.length > 0 && <FoundTable checks={found} />}
      {fine.length > 0 && (
        <p>
          <StateMark tone="good">Nothing found:</StateMark>{" "}
          {fine.map(({ name }) => inSentence(name)).join("; ")}.
        </p>
      )}
    </>
  );
}

function FoundTable({ checks }: { readonly checks: readonly Check[] }) {
  return (
    <DataTable
      caption="Is anything wrong?"
      rows={checks}
      rowKey={({ name }) => name}
      href={({ href }) => href}
      columns={[
        { heading: "Check", cell: ({ name }) => name },
        {
          heading: "State",
          cell: ({ finding }) =>
            finding === undefined ? (
              <span aria-busy="true" />
            ) : (
              <StateMark tone={finding.tone}>{finding.word}</StateMark>
            ),
        },
        { heading: "Detail", cell: ({ finding }) => finding?.detail },
      ]}
    />
  );
}

/** What the service is for. */
function Stopped({ hours }: { readonly hours: readonly HourSum[] }) {
  return (
    <p className={styles.stopped}>
      <strong>{formatNoun(totalOf(hours, "replayed"), "duplicate", "duplicates")} stopped</strong> in 24 h, of{" "}
      {formatNoun(claimsOf(hours), "claim", "claims")}
    </p>
  );
}

function claimsOf(hours: readonly HourSum[]): number {
  return COUNTS.reduce((sum, count) => sum + totalOf(hours, count), 0);
}

function Traffic({ recent }: { readonly recent: RecentHours }) {
  const { hours, isCut, error, retry } = recent;
  if (error !== undefined) return <ErrorState error={error} retry={retry} />;
  if (hours === undefined) return <OutcomesLoading />;
  if (claimsOf(hours) === 0) {
    return <Empty command="onceward usage show">No claim was answered in the last 24 hours.</Empty>;
  }
  return (
    <>
      {isCut && (
        <p role="status">
          So many namespaces are busy that the newest hours are missing: choose a namespace to see all of its
          hours.
        </p>
      )}
      <Outcomes hours={hours} />
      <CliHint command="onceward usage show --after 24h" />
    </>
  );
}
