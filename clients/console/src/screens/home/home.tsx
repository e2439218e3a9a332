import type { GetUsageNowResponse } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import type { UsageNow } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { useSearchParams } from "wouter";
import { formatNoun, inSentence } from "../../format/quantity.ts";
import { CliHint } from "../../parts/copy-button.tsx";
import { DataTable } from "../../parts/data-table.tsx";
import { SelectField } from "../../parts/field.tsx";
import { FilterBar, NamespaceField, useFilters, useNamespace } from "../../parts/filter-bar.tsx";
import { Empty, ErrorState, Loading } from "../../parts/list-states.tsx";
import { StateMark, type StateTone } from "../../parts/state-mark.tsx";
import { Screen } from "../../shell/screen.tsx";
import styles from "../../styles/screens.module.css";
import {
  type Check,
  NOT_ANSWERED,
  refusalCheck,
  useAmbiguousCheck,
  useDenialCheck,
  useJobCheck,
  useKeyCheck,
  useRetentionCheck,
} from "./checks.tsx";
import { FirstClaim } from "./first-claim.tsx";
import { type Bar, lastOf, RANGES, type Range, totalOf } from "./hours.ts";
import { NowTable, nowWords } from "./now.tsx";
import { Outcomes, OutcomesLoading } from "./outcomes.tsx";
import { type RecentUse, useRecentHours, useRecentMinutes, useUsageNow } from "./use-hours.ts";

/** The screen "Home": is anything wrong? */
export default function Home() {
  const [parameters] = useSearchParams();
  const namespace = useNamespace(parameters.get("namespace") ?? "");
  const recent = useRecentHours(namespace, "24h");
  const { data: now } = useUsageNow(namespace);
  const checks = [
    refusalCheck(recent, now?.total, namespace),
    useAmbiguousCheck(namespace),
    useRetentionCheck(namespace),
    useKeyCheck(namespace),
    useDenialCheck(),
    useJobCheck(),
  ];
  // The rows' heights are not known before: nothing moves if all of them come at once. Later changes stay in place.
  const [wasAnswered, setAnswered] = useState(false);
  const isTrafficAnswered = recent.bars !== undefined || recent.error !== undefined;
  if (!wasAnswered && isTrafficAnswered && checks.every(({ finding }) => finding !== undefined))
    setAnswered(true);
  return (
    <Screen title="Home" answer={summarize(checks)}>
      {wasAnswered ? (
        <Answers checks={checks} namespace={namespace} recent={recent} now={now} />
      ) : (
        <Loading rows={20} />
      )}
    </Screen>
  );
}

interface AnswersProps {
  readonly checks: readonly Check[];
  readonly namespace: string;
  readonly recent: RecentUse;
  readonly now: GetUsageNowResponse | undefined;
}

function Answers(props: AnswersProps) {
  const { recent, now, namespace } = props;
  const isUsed = recent.bars === undefined || totalOf(recent.bars, "claims") > 0;
  // A claim of the last seconds is among the current ones before it is in an hour.
  if (isUsed || now?.total?.claims !== 0n) return <Dashboard {...props} />;
  return (
    <FirstRun namespace={namespace}>
      <Dashboard {...props} />
    </FirstRun>
  );
}

/** Shows `children` if the last month had claims; else how to make the first one. */
function FirstRun({ namespace, children }: { readonly namespace: string; readonly children: ReactNode }) {
  const { bars } = useRecentHours(namespace, "30d");
  return bars !== undefined && totalOf(bars, "claims") === 0 ? <FirstClaim /> : children;
}

function Dashboard({ checks, namespace, recent, now }: AnswersProps) {
  const { range: asked } = useFilters(["range"]);
  const offered = (Object.entries(RANGES) as [Range, (typeof RANGES)[Range]][]).filter(
    ([each]) => each !== "1h" || namespace === "",
  );
  const [range] = offered.find(([each]) => each === asked) ?? ["24h"];
  return (
    <>
      {recent.bars !== undefined && totalOf(recent.bars, "claims") > 0 && (
        <DuplicatesStopped bars={recent.bars} now={now?.total} />
      )}
      <CheckTable checks={checks} />
      {checks.some(({ finding }) => finding?.word === NOT_ANSWERED) && <RetryFailed />}
      <h2>Traffic</h2>
      <FilterBar>
        <NamespaceField value={namespace} />
        <SelectField
          label="Time"
          name="range"
          defaultValue={range}
          options={Object.fromEntries(offered.map(([each, { label }]) => [each, label]))}
        />
      </FilterBar>
      <Traffic namespace={namespace} now={now} range={range} />
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
  if (findings.length < checks.length) return "Checking…";
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
          <StateMark tone="good" word="Nothing found:" />{" "}
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
        ["Check", ({ name }) => name],
        [
          "State",
          ({ finding }) => (finding === undefined ? <span aria-busy="true" /> : <StateMark {...finding} />),
        ],
        ["Detail", ({ finding }) => finding?.detail],
      ]}
    />
  );
}

/** What the service is for. */
function DuplicatesStopped({
  bars,
  now,
}: {
  readonly bars: readonly Bar[];
  readonly now: UsageNow | undefined;
}) {
  return (
    <p className={styles.stopped}>
      <strong>{formatNoun(totalOf(bars, "duplicates"), "duplicate", "duplicates")} stopped</strong> in 24 h,
      of {formatNoun(totalOf(bars, "claims"), "claim", "claims")}
      {now !== undefined && `. Now ${nowWords(now)}.`}
    </p>
  );
}

interface TrafficProps {
  readonly namespace: string;
  readonly now: GetUsageNowResponse | undefined;
  readonly range: Range;
}

function Traffic({ namespace, now, range }: TrafficProps) {
  return (
    <>
      {now !== undefined && now.namespaces.length > 1 && <NowTable namespaces={now.namespaces} />}
      {range === "1h" ? <Minutes /> : <Hours namespace={namespace} range={range} />}
    </>
  );
}

function Minutes() {
  return <Chart recent={useRecentMinutes()} range="1h" />;
}

function Hours({ namespace, range }: { readonly namespace: string; readonly range: Exclude<Range, "1h"> }) {
  return <Chart recent={useRecentHours(namespace, range)} range={range} />;
}

function Chart({ recent, range }: { readonly recent: RecentUse; readonly range: Range }) {
  const { bars, isCut, error, retry } = recent;
  if (error !== undefined) return <ErrorState error={error} retry={retry} />;
  if (bars === undefined) return <OutcomesLoading />;
  if (bars.every(({ claims, refused }) => claims + refused === 0)) {
    return <Empty command="onceward usage show">No claim came in {lastOf(range)}.</Empty>;
  }
  return (
    <>
      {isCut && (
        <p role="status">
          So many namespaces are busy that the newest hours are missing: choose a namespace to see all of its
          hours.
        </p>
      )}
      <Outcomes bars={bars} range={range} />
      <CliHint command={`onceward usage show --after ${range}`} />
    </>
  );
}
