import type { GetUsageNowResponse } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import type { UsageNow } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { useQueryClient } from "@tanstack/react-query";
import { lazy, Suspense, useState } from "react";
import { Link, useSearchParams } from "wouter";
import { formatNoun, inSentence } from "../../format/quantity.ts";
import { formatAbsolute } from "../../format/time.ts";
import { CliHint } from "../../parts/copy-button.tsx";
import { DataTable } from "../../parts/data-table.tsx";
import { SelectField } from "../../parts/field.tsx";
import { FilterBar, NamespaceField, useFilters, useNamespace } from "../../parts/filter-bar.tsx";
import { Empty, ErrorState, Loading } from "../../parts/list-states.tsx";
import { StateMark, type StateTone } from "../../parts/state-mark.tsx";
import { SUSPENDED, useConnection } from "../../session/connection.ts";
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
  useMisspeltCheck,
  useRetentionCheck,
} from "./checks.tsx";
import { type Bar, lastOf, RANGES, type Range, totalOf } from "./hours.ts";
import { NowTable, nowWords } from "./now.tsx";
import { Outcomes, OutcomesLoading } from "./outcomes.tsx";
import { type RecentUse, useRecentHours, useRecentMinutes, useUsageNow } from "./use-hours.ts";

/** The screen "Home": is anything wrong? */
export default function Home() {
  const [parameters] = useSearchParams();
  const namespace = useNamespace(parameters.get("namespace") ?? "");
  const recent = useRecentHours(namespace, "24h");
  const { data: now, error: nowError } = useUsageNow(namespace);
  const checks = [
    refusalCheck(recent, now?.total, namespace),
    useAmbiguousCheck(namespace),
    useRetentionCheck(namespace),
    useKeyCheck(namespace),
    useMisspeltCheck(namespace),
    useDenialCheck(),
    useJobCheck(),
  ];
  // A claim of the last seconds is among the current ones before it is in an hour.
  const isIdle =
    recent.bars !== undefined && totalOf(recent.bars, "claims") === 0 && now?.total?.claims === 0n;
  const { bars: month, error: monthError } = useRecentHours(namespace, "30d", isIdle);
  const isUnused = isIdle && month !== undefined && totalOf(month, "claims") === 0;
  // The rows' heights are not known before: nothing moves if all of them come at once. Later changes stay in place.
  const [wasAnswered, setAnswered] = useState(false);
  const isTrafficAnswered =
    (recent.bars !== undefined || recent.error !== null) &&
    (now !== undefined || nowError !== null) &&
    (!isIdle || month !== undefined || monthError !== null);
  if (!wasAnswered && isTrafficAnswered && checks.every(({ finding }) => finding !== undefined))
    setAnswered(true);
  const { title, worst } = useTitle(checks, wasAnswered, isUnused);
  return (
    <Screen
      title={title}
      actions={
        worst && (
          <Link href={worst.href} data-look="primary">
            {worst.finding?.act ?? "See why"}
          </Link>
        )
      }
    >
      {!wasAnswered ? (
        <Loading rows={20} />
      ) : isUnused ? (
        <Suspense fallback={<Loading rows={8} />}>
          <FirstClaim />
        </Suspense>
      ) : (
        <Dashboard checks={checks} namespace={namespace} recent={recent} now={now} />
      )}
    </Screen>
  );
}

/** A file of its own: a tenant in use needs no dialog of a new key here. */
const FirstClaim = lazy(() => import("./first-claim.tsx"));

interface DashboardProps {
  readonly checks: readonly Check[];
  readonly namespace: string;
  readonly recent: RecentUse;
  readonly now: GetUsageNowResponse | undefined;
}

function Dashboard({ checks, namespace, recent, now }: DashboardProps) {
  const { connection } = useConnection();
  const { range: asked } = useFilters(["range"]);
  const offered = (Object.entries(RANGES) as [Range, (typeof RANGES)[Range]][]).filter(
    ([each]) => each !== "1h" || namespace === "",
  );
  const [range] = offered.find(([each]) => each === asked) ?? ["24h"];
  const minutes = useRecentMinutes(namespace);
  const hours = useRecentHours(namespace, range === "1h" ? "24h" : range);
  return (
    <>
      <Checks checks={checks} />
      {connection === "answering" && checks.some(isFailed) && <RetryFailed />}
      {recent.bars !== undefined && totalOf(recent.bars, "claims") > 0 && (
        <DuplicatesStopped bars={recent.bars} {...(now?.total && { now: now.total })} />
      )}
      {now !== undefined && now.namespaces.length > 1 && <NowTable namespaces={now.namespaces} />}
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
      <Chart recent={range === "1h" ? minutes : hours} range={range} />
    </>
  );
}

function RetryFailed() {
  const queryClient = useQueryClient();
  const retry = () => queryClient.refetchQueries({ predicate: ({ state }) => state.status === "error" });
  return (
    <p>
      Not all of this is from now.{" "}
      <button type="button" onClick={() => void retry()}>
        Try again
      </button>
    </p>
  );
}

function isFailed({ finding, isStale = false }: Check): boolean {
  return isStale || finding?.word === NOT_ANSWERED;
}

/** Returns the title, which is the worst problem that is known yet, and where it leads. */
function useTitle(checks: readonly Check[], wasAnswered: boolean, isUnused: boolean) {
  const { connection, since } = useConnection();
  if (connection === "suspended") return { title: SUSPENDED };
  const [worst] = checks.toSorted((a, b) => rankOf(a) - rankOf(b));
  if (worst?.finding !== undefined && rankOf(worst) <= RANKS.attention)
    return { title: worst.finding.headline ?? `${worst.name}: ${worst.finding.word}`, worst };
  if (!wasAnswered) return { title: "Home" };
  if (isUnused) return { title: "No claim yet: make the first one" };
  const unanswered = checks.filter(({ finding }) => finding?.word === NOT_ANSWERED).length;
  if (unanswered > 0)
    return { title: `${unanswered} of ${formatNoun(checks.length, "check", "checks")} were not answered` };
  if (connection === "answering") return { title: "Nothing needs your attention" };
  return { title: `Nothing was wrong at ${formatAbsolute(since)}` };
}

function rankOf({ finding }: Check): number {
  return finding === undefined ? RANKS.quiet : RANKS[finding.tone];
}

/** What needs a person comes first. */
const RANKS: Readonly<Record<StateTone, number>> = { bad: 0, attention: 1, busy: 2, quiet: 2, good: 3 };

/** The checks that found something, and in a line those that did not: not of a suspended tenant, whose calls are refused since. */
function Checks({ checks }: { readonly checks: readonly Check[] }) {
  const { connection } = useConnection();
  const fine = checks.filter((check) => rankOf(check) === RANKS.good);
  const found = checks.filter((check) => !fine.includes(check)).toSorted((a, b) => rankOf(a) - rankOf(b));
  return (
    <>
      {found.length > 0 && (
        <DataTable
          caption="Is anything wrong?"
          rows={found}
          rowKey={({ name }) => name}
          href={({ href }) => href}
          columns={[
            ["Check", ({ name }) => name],
            ["State", ({ finding }) => finding && <StateMark {...finding} />],
            ["Detail", ({ finding }) => finding?.detail],
          ]}
        />
      )}
      {fine.length > 0 && connection !== "suspended" && (
        <p>
          <StateMark tone="good" word="Nothing found" /> {fine.map(({ name }) => inSentence(name)).join("; ")}
          .
        </p>
      )}
    </>
  );
}

/** What the service is for. */
function DuplicatesStopped({ bars, now }: { readonly bars: readonly Bar[]; readonly now?: UsageNow }) {
  const settled = totalOf(bars, "settled");
  return (
    <p className={styles.stopped}>
      <strong>{formatNoun(totalOf(bars, "duplicates"), "duplicate", "duplicates")} stopped</strong> in 24 h,
      of {formatNoun(totalOf(bars, "claims"), "claim", "claims")}
      {now !== undefined && `. Now ${nowWords(now)}.`}
      {settled > 0 &&
        ` ${formatNoun(settled, "unknown outcome", "unknown outcomes")} settled without a person.`}
    </p>
  );
}

function Chart({ recent, range }: { readonly recent: RecentUse; readonly range: Range }) {
  const { bars, isCut, error, refetch } = recent;
  if (bars === undefined) {
    return error === null ? <OutcomesLoading /> : <ErrorState error={error} retry={refetch} />;
  }
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
