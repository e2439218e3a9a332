import { timestampDate, timestampFromDate } from "@bufbuild/protobuf/wkt";
import { useQuery } from "@connectrpc/connect-query";
import { Record_State } from "@onceward/gen/onceward/v1/record_pb.ts";
import { ListRecordsRequest_Order, TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import { AuditEvent_Outcome, type UsageNow } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { defectTitle, suspicionsOf } from "@onceward/words/key-quality-words";
import { ALL_REFUSALS, type RefusalCounts, refusalWords, refusedCount } from "@onceward/words/refusals";
import { similarName } from "@onceward/words/similar-names";
import { describeVerdict } from "@onceward/words/verdict-words";
import type { ReactNode } from "react";
import { formatDuration } from "../../format/duration.ts";
import { asTitle, formatCount, formatNoun, inSentence } from "../../format/quantity.ts";
import { NamespaceLinks } from "../../parts/namespace-links.tsx";
import { useFirstNamespaces } from "../../parts/namespace-names.ts";
import type { Mark } from "../../parts/state-mark.tsx";
import { Time, useNow } from "../../parts/time.tsx";
import { useAmbiguousCount, useUnfinishedJobs } from "../../parts/work-counts.ts";
import { readFailure } from "../../session/failure.ts";
import { useLiveInterval } from "../../shell/live.ts";
import { denialWords } from "../audit/actions.ts";
import { ADVISED_AT_ONCE, useAdvice } from "../retention/use-advice.ts";
import { type Bar, barOf, firstOf, totalOf } from "./hours.ts";
import type { RecentUse } from "./use-hours.ts";

/** One line of "is anything wrong?". */
export interface Check {
  readonly name: string;
  /** Where to look, below `/console`. */
  readonly href: string;
  /** Undefined until it is answered. */
  readonly finding: Finding | undefined;
  /** Whether the finding is from before: the last attempt to read it again failed. */
  readonly isStale?: boolean;
}

/** The word is one or two beside the shape. */
interface Finding extends Mark {
  /** The finding as the title of Home. Default: name and word. */
  readonly headline?: string;
  /** What a person does about it, on the button beside the headline. Default: "See why". */
  readonly act?: string;
  readonly detail: ReactNode;
}

/** The word of a check whose call failed. */
export const NOT_ANSWERED = "Not answered";

const LIVE_MS = 10_000;
const NONE: Finding = { tone: "good", word: "None", detail: "" };

/**
 * Returns a check: its finding is asked for once all of its questions are answered. One that fails hides neither the others nor what
 * was known before.
 */
function checkOf(
  name: string,
  href: string,
  questions: readonly { readonly data?: unknown; readonly error: unknown }[],
  find: () => Finding,
): Check {
  const failed = questions.find(({ error }) => error !== null && error !== undefined);
  const isAnswered = questions.every(({ data }) => data !== undefined);
  if (isAnswered) return { name, href, finding: find(), isStale: failed !== undefined };
  return { name, href, finding: failed && unanswered(failed.error) };
}

function isPartial(lists: ReturnType<typeof useFirstNamespaces>["lists"]): boolean {
  return lists.some(({ data }) => data?.nextPageToken !== "");
}

/** Returns the finding of a check that found nothing. One that looked at a part has not said that all is well. */
function noneOf(count: number, isPart: boolean): Finding {
  if (!isPart) return NONE;
  return {
    tone: "quiet",
    word: "None found yet",
    detail: `Only the first ${formatCount(count)} namespaces were checked.`,
  };
}

/** Ambiguous records: how many, and since when the oldest waits. `namespace` "" is all. */
export function useAmbiguousCheck(namespace: string): Check {
  const refetchInterval = useLiveInterval(LIVE_MS);
  const now = useNow();
  const counted = useAmbiguousCount(namespace);
  const listed = useQuery(
    TenantAdminService.method.listRecords,
    { namespace, state: Record_State.AMBIGUOUS, order: ListRecordsRequest_Order.LEASE_EXPIRY, pageSize: 1 },
    { refetchInterval },
  );
  return checkOf("Ambiguous records", "/ambiguous", [counted, listed], () => {
    const { ambiguous = 0n, isLowerBound = false } = counted.data ?? {};
    if (ambiguous === 0n) return NONE;
    const word = `${isLowerBound ? "at least " : ""}${formatCount(ambiguous)}`;
    const oldest = listed.data?.records[0]?.leaseExpiresAt;
    const detail = (
      <>
        They wait for a person. The oldest since <Time at={oldest} />.
      </>
    );
    const age =
      oldest && `, the oldest for ${formatDuration(now.getTime() - timestampDate(oldest).getTime())}`;
    const records = ambiguous === 1n ? "record waits" : "records wait";
    const headline = `${asTitle(word)} ${records} for you${age ?? ""}`;
    return { tone: "attention", word, headline, act: "Decide", detail };
  });
}

/** What was refused in the last minute, and in the last 24 hours. */
export function refusalCheck(
  { bars, error }: RecentUse,
  now: UsageNow | undefined,
  namespace: string,
): Check {
  const href = namespace === "" ? "/refused" : `/refused?namespace=${namespace}`;
  return checkOf("Refused calls", href, [{ data: bars, error }], () => {
    const ofDay = countsOf(bars ?? []);
    const isNow = now !== undefined && refusedCount(now) > 0;
    const shown = isNow ? now : ofDay;
    const words = refusalWords(shown);
    if (words.length === 0) return NONE;
    const refused = refusedCount(shown) || Number(shown.wouldBeRefused);
    return {
      tone: isNow ? "bad" : refusedCount(ofDay) > 0 ? "attention" : "quiet",
      word: `${formatCount(refused)} in ${isNow ? "the last minute" : "24h"}`,
      detail: words.map((each) => `${each}.`).join(" "),
    };
  });
}

/** Returns what was refused in the time of some bars, by cause. */
export function countsOf(bars: readonly Bar[]): RefusalCounts {
  const counters = [...ALL_REFUSALS, "wouldBeRefused"] as const;
  return Object.fromEntries(counters.map((name) => [name, totalOf(bars, name)])) as RefusalCounts;
}

/** Calls of the last 24 hours that were denied to their callers. */
export function useDenialCheck(): Check {
  const after = firstOf(barOf(useNow(), "24h"), "24h");
  const listed = useQuery(
    TenantAdminService.method.listAuditEvents,
    { outcome: AuditEvent_Outcome.DENIED, after: timestampFromDate(after), pageSize: 100 },
    { refetchInterval: useLiveInterval(LIVE_MS) },
  );
  return checkOf("Denied calls, 24 h", "/audit?outcome=denied", [listed], () => {
    const { events = [], nextPageToken = "" } = listed.data ?? {};
    const calls = events.reduce((sum, event) => sum + event.calls, 0);
    if (calls === 0) return NONE;
    const reasons = [...new Set(events.map(({ denial }) => denialWords(denial)))].join(", ");
    const word = `${nextPageToken === "" ? "" : "at least "}${formatCount(calls)}`;
    return { tone: "attention", word, detail: `Because of: ${reasons}.` };
  });
}

/** Background changes of records that are not finished. */
export function useJobCheck(): Check {
  const listed = useUnfinishedJobs();
  return checkOf("Unfinished jobs", "/jobs", [listed], () => {
    const unfinished = listed.data ?? [];
    if (unfinished.length === 0) return NONE;
    const namespaces = unfinished.map(({ namespace }) => namespace || "all namespaces");
    const detail = `Changing records of ${[...new Set(namespaces)].join(", ")}.`;
    return { tone: "busy", word: formatCount(unfinished.length), detail };
  });
}

/** Namespaces that are not declared, and whose names are similar to those of declared ones. */
export function useMisspeltCheck(namespace: string): Check {
  const { lists, declared, undeclared } = useFirstNamespaces({ pageSize: ADVISED_AT_ONCE }, namespace === "");
  return checkOf("Misspelt namespaces", "/namespaces?list=undeclared", lists, () => {
    const similar = undeclared.flatMap((name) => {
      const other = similarName(name, declared);
      return other === undefined ? [] : [{ name, other }];
    });
    if (similar.length === 0) return noneOf(declared.length + undeclared.length, isPartial(lists));
    const detail = similar.map(({ name, other }) => (
      <div key={name}>
        <NamespaceLinks names={[name]} /> is not declared, and similar to {other}.
      </div>
    ));
    return { tone: "attention", word: formatCount(similar.length), detail };
  });
}

/** Namespaces whose retention is too short. `namespace` "" looks at the first ones by name. */
export function useRetentionCheck(namespace: string): Check {
  const { lists, declared, undeclared } = useFirstNamespaces({ pageSize: ADVISED_AT_ONCE }, namespace === "");
  const listedNames = [...declared, ...undeclared];
  const isListed = lists.every(({ data }) => data !== undefined);
  const advised = useAdvice(namespace === "" ? listedNames : [namespace], isListed);
  const isAdvised = advised.every(({ advice, error }) => advice !== undefined || error !== undefined);
  const questions = [...lists, { data: isAdvised || undefined, error: null }];
  return checkOf("Retention too short", "/namespaces", questions, () => {
    const short = advised.filter(({ advice }) => advice?.verdict === "too short");
    const isPart = listedNames.length > ADVISED_AT_ONCE || isPartial(lists);
    if (short.length === 0) return noneOf(advised.length, isPart);
    const word = formatNoun(short.length, "namespace", "namespaces");
    const detail = short.map(({ name, advice }) => (
      <div key={name}>
        <NamespaceLinks names={[name]} />: {advice && describeVerdict(advice)}
      </div>
    ));
    const scope = isPart && `Of the first ${advised.length} namespaces.`;
    const headline = `The retention of ${word} is too short`;
    return { tone: "attention", word, headline, detail: [...detail, scope] };
  });
}

/** Namespaces whose keys are suspected of a defect. */
export function useKeyCheck(namespace: string): Check {
  const listed = useQuery(TenantAdminService.method.getKeyQuality, { namespace, pageSize: ADVISED_AT_ONCE });
  return checkOf("Suspicious keys", "/key-quality", [listed], () => {
    const { namespaces = [], nextPageToken = "" } = listed.data ?? {};
    const suspected = namespaces.filter((quality) => suspicionsOf(quality).ofKeys.length > 0);
    const isPart = nextPageToken !== "";
    const scope = isPart ? ` Of the first ${namespaces.length} namespaces.` : "";
    if (suspected.length === 0) return noneOf(namespaces.length, isPart);
    const defects = suspected.map((quality) => {
      const titles = suspicionsOf(quality).ofKeys.map(({ defect }) => inSentence(defectTitle(defect)));
      return `${quality.namespace}: ${titles.join(", ")}`;
    });
    const word = formatNoun(suspected.length, "namespace", "namespaces");
    const headline = `The keys of ${word} look wrong`;
    return { tone: "attention", word, headline, detail: `${defects.join("; ")}.${scope}` };
  });
}

function unanswered(error: unknown): Finding {
  const { message, reason, requestId } = readFailure(error);
  const details = [reason, requestId && `request ${requestId}`].filter((part) => part);
  const detail = details.length === 0 ? message : `${message} (${details.join(", ")})`;
  return { tone: "quiet", word: NOT_ANSWERED, detail };
}
