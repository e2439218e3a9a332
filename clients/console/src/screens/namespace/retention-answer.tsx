import { useQuery } from "@connectrpc/connect-query";
import { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import { type Advice, adviceOf } from "@onceward/words/retention-advice";
import { advisedMs, judge, lateOf, targetOfTraffic, type Verdict } from "@onceward/words/retention-verdict";
import { describeVerdict } from "@onceward/words/verdict-words";
import { keepPreviousData } from "@tanstack/react-query";
import type { PropsWithChildren } from "react";
import { useSearchParams } from "wouter";
import { formatDuration } from "../../format/duration.ts";
import { Empty, ErrorState, Loading } from "../../parts/list-states.tsx";
import { StateMark } from "../../parts/state-mark.tsx";
import { TimeText } from "../../parts/time.tsx";
import { DAYS, LateDuplicates, useUsageDays } from "../../policy/late-claims.tsx";
import common from "../../styles/common.module.css";
import styles from "../../styles/screens.module.css";
import { proposalOf } from "../retention/candidates.ts";
import { Comparison } from "../retention/comparison.tsx";
import { RetentionFigure } from "../retention/retention-figure.tsx";
import { nameVerdict } from "../retention/words.ts";

interface RetentionAnswerProps {
  readonly namespace: string;
  /** What the form has; undefined: it cannot be read, or is inherited from a policy that is not known. */
  readonly proposedMs: number | undefined;
  /** Types a retention into the form. */
  readonly propose: (ms: number) => void;
  /** As `propose`, and asks for the change. */
  readonly adopt: (ms: number, isFix: boolean) => void;
  /** What the retention was before a longer one was saved in this visit; undefined: none was. */
  readonly lengthened: Lengthened | undefined;
}

/** A retention that was replaced by a longer one. */
export interface Lengthened {
  readonly beforeMs: number;
  /** No observed duplicate came later than the new one. */
  readonly isFixed: boolean;
}

/** Whether the retention of a namespace is long enough: a sentence, a button, and the picture; then the children. */
export function RetentionAnswer({ namespace, children, ...props }: PropsWithChildren<RetentionAnswerProps>) {
  const [parameters] = useSearchParams();
  const answer = useAdviceForTraffic(namespace, Number(parameters.get("target")));
  const { isPending } = useUsageDays(namespace, DAYS);
  // What is below would move: the room of the answer is not known before it.
  if (isPending || (answer.data === undefined && answer.error === null)) return <Loading rows={30} />;
  return (
    <>
      {answer.data === undefined ? (
        <ErrorState error={answer.error} retry={answer.refetch} />
      ) : (
        <Evidence namespace={namespace} advice={adviceOf(answer.data)} {...props} />
      )}
      {children}
    </>
  );
}

/** Returns the advice for an accepted number of late duplicates in a million claims; 0: the one that the traffic can show. */
function useAdviceForTraffic(namespace: string, asked: number) {
  const method = TenantAdminService.method.getRetentionAdvice;
  const isAsked = asked >= 1 && asked <= 1_000_000;
  const first = useQuery(method, { namespace, maxLatePerMillion: isAsked ? Math.floor(asked) : 0 });
  const target = isAsked || first.data === undefined ? undefined : targetOfTraffic(adviceOf(first.data));
  const options = { enabled: target !== undefined, placeholderData: keepPreviousData };
  const second = useQuery(method, { namespace, maxLatePerMillion: target ?? 0 }, options);
  // Not the first answer until the second has come: its longer sentence would move what is below.
  return target === undefined || second.error !== null ? first : second;
}

/** What is said of a longer retention until its own duplicates are observed. */
const CHANGED = {
  fixed: { tone: "good", word: "Fixed" },
  lengthened: { tone: "busy", word: "Lengthened" },
} as const;

/** Returns whether no observed duplicate would come later than the advised retention. */
function isFix(verdict: Verdict): boolean {
  return verdict.kind === "too short" && verdict.better !== undefined && lateOf(verdict.better) === 0;
}

function Evidence({
  namespace,
  advice,
  proposedMs = advice.retentionMs,
  propose,
  adopt,
  lengthened,
}: RetentionAnswerProps & { readonly advice: Advice }) {
  const verdict = judge(advice);
  const better = advisedMs(verdict);
  const changed = better === undefined ? lengthened : undefined;
  const { tone, word } =
    changed === undefined ? nameVerdict(verdict) : CHANGED[changed.isFixed ? "fixed" : "lengthened"];
  const proposal = proposalOf(advice, proposedMs);
  return (
    <>
      <section
        className={`${common.card} ${styles.verdict}`}
        data-tone={tone}
        aria-label="Is the retention long enough?"
      >
        <p>
          <StateMark tone={tone} word={`${word}: ${formatDuration(advice.retentionMs)}`} />
        </p>
        <p>
          {changed !== undefined && `It was ${formatDuration(changed.beforeMs)}. `}
          {describeVerdict(verdict)}{" "}
          {advice.observedSince !== undefined && (
            <span className={common.quiet}>
              Observed since <TimeText at={advice.observedSince} form="absolute" />.
            </span>
          )}
        </p>
        {better !== undefined && (
          <button
            type="button"
            data-look={verdict.kind === "too short" ? "primary" : "plain"}
            onClick={() => adopt(better, isFix(verdict))}
          >
            Use {formatDuration(better)}
          </button>
        )}
      </section>
      {advice.observedSince === undefined || proposal === undefined ? (
        <Empty command={`onceward advice ${namespace}`}>
          No claim was counted in this namespace, so nothing is known about its duplicates.
        </Empty>
      ) : (
        <>
          <RetentionFigure namespace={namespace} advice={advice} proposedMs={proposedMs} propose={propose} />
          <LateDuplicates namespace={namespace} />
          {proposedMs !== advice.retentionMs && <Comparison advice={advice} proposal={proposal} />}
        </>
      )}
    </>
  );
}
