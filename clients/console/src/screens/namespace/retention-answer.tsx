import { useQuery } from "@connectrpc/connect-query";
import { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import { type Advice, adviceOf } from "@onceward/words/retention-advice";
import { describeVerdict } from "@onceward/words/verdict-words";
import type { PropsWithChildren } from "react";
import { Link } from "wouter";
import { formatDurationMs } from "../../format/duration.ts";
import { Empty, ErrorState, Loading } from "../../parts/list-states.tsx";
import { StateMark } from "../../parts/state-mark.tsx";
import { TimeText } from "../../parts/time.tsx";
import { LateDuplicates } from "../../policy/late-claims.tsx";
import common from "../../styles/common.module.css";
import styles from "../../styles/screens.module.css";
import { proposalOf } from "../retention/candidates.ts";
import { Comparison } from "../retention/comparison.tsx";
import { RetentionFigure } from "../retention/retention-figure.tsx";
import { nameVerdict } from "../retention/use-advice.ts";

interface RetentionAnswerProps {
  readonly namespace: string;
  /** What the form has; undefined: it cannot be read, or is inherited from a policy that is not known. */
  readonly proposedMs: number | undefined;
  /** Types a retention into the form. */
  readonly propose: (ms: number) => void;
  /** As `propose`, and asks for the change. */
  readonly adopt: (ms: number) => void;
  /** What the retention was before another one was saved in this visit; undefined: none was. */
  readonly beforeMs: number | undefined;
}

/** Whether the retention of a namespace is long enough: a sentence, a button, and the picture; then the children. */
export function RetentionAnswer({ namespace, children, ...props }: PropsWithChildren<RetentionAnswerProps>) {
  const answer = useQuery(TenantAdminService.method.getRetentionAdvice, { namespace });
  // What is below would move: the room of the answer is not known before it.
  if (answer.data === undefined && answer.error === null) return <Loading rows={30} />;
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

function Evidence({
  namespace,
  advice,
  proposedMs = advice.retentionMs,
  propose,
  adopt,
  beforeMs,
}: RetentionAnswerProps & { readonly advice: Advice }) {
  const { verdict, advised } = advice;
  const { tone, word } = nameVerdict(advice);
  const proposal = proposalOf(advice, proposedMs);
  return (
    <>
      <section
        className={`${common.card} ${styles.verdict}`}
        data-tone={tone}
        aria-label="Is the retention long enough?"
      >
        <p>
          <StateMark tone={tone} word={`${word}: ${formatDurationMs(advice.retentionMs)}`} />
        </p>
        <p>
          {beforeMs !== undefined && `It was ${formatDurationMs(beforeMs)}. `}
          {describeVerdict(advice)}{" "}
          {advice.observedSince !== undefined && (
            <span className={common.quiet}>
              Observed since <TimeText at={advice.observedSince} form="absolute" />.
            </span>
          )}
        </p>
        {advised !== undefined && (
          <button
            type="button"
            data-look={verdict === "too short" ? "primary" : "plain"}
            onClick={() => adopt(advised.retentionMs)}
          >
            Use {formatDurationMs(advised.retentionMs)}
          </button>
        )}
        {verdict === "all refused" && <Link href={`/refused?namespace=${namespace}`}>See why</Link>}
      </section>
      {advice.observedSince === undefined || proposal === undefined ? (
        <Empty command={`onceward advice ${namespace}`}>
          No claim was granted in this namespace, so nothing is known about its duplicates.
        </Empty>
      ) : (
        <>
          <RetentionFigure advice={advice} proposedMs={proposedMs} propose={propose} />
          <LateDuplicates namespace={namespace} />
          {proposedMs !== advice.retentionMs && <Comparison advice={advice} proposal={proposal} />}
        </>
      )}
    </>
  );
}
