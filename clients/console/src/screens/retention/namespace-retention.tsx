import { useQuery } from "@connectrpc/connect-query";
import { formatDurationMs } from "@onceward/decode/durations.ts";
import { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import { useState } from "react";
import { Link, useSearchParams } from "wouter";
import { formatDuration, parseDuration } from "../../format/duration.ts";
import { SelectField } from "../../parts/field.tsx";
import { Empty, ErrorState, Loading } from "../../parts/list-states.tsx";
import { StateMark } from "../../parts/state-mark.tsx";
import { TimeText } from "../../parts/time.tsx";
import { Screen } from "../../shell/screen.tsx";
import { type Advice, adviceOf, proposalOf } from "./candidates.ts";
import type { Change } from "./change.ts";
import { Comparison } from "./comparison.tsx";
import { JobProgress } from "./job-progress.tsx";
import { LateRepeats } from "./late-repeats.tsx";
import { PolicyChange } from "./policy-change.tsx";
import styles from "./retention.module.css";
import { RetentionFigure } from "./retention-figure.tsx";
import { advisedMs, judge } from "./verdict.ts";
import { describeVerdict, nameVerdict } from "./words.ts";

/** The accepted numbers of late duplicates in a million claims that the screen offers; the first is the service's default. */
const TARGETS = ["1", "10", "100", "1000", "10000"];

/** The retention of one namespace: the evidence, a line that can be moved, and the change. */
export function NamespaceRetention({ namespace }: { readonly namespace: string }) {
  const [parameters] = useSearchParams();
  const target = parameters.get("target") ?? "";
  const answer = useQuery(TenantAdminService.method.getRetentionAdvice, {
    namespace,
    maxLatePerMillion: TARGETS.includes(target) ? Number(target) : 0,
  });
  const job = parameters.get("job") ?? "";
  return (
    <Screen title={`Retention of ${namespace}`} actions={<Link href="/retention">All namespaces</Link>}>
      {/^\d{1,18}$/.test(job) && <JobProgress id={BigInt(job)} />}
      {answer.data !== undefined ? (
        <Evidence namespace={namespace} advice={adviceOf(answer.data)} />
      ) : answer.error === null ? (
        <Loading rows={14} />
      ) : (
        <ErrorState error={answer.error} retry={answer.refetch} />
      )}
    </Screen>
  );
}

function Evidence({ namespace, advice }: { readonly namespace: string; readonly advice: Advice }) {
  const [proposedMs, propose] = useProposal(advice.retentionMs);
  const [change, setChange] = useState<Change>();
  const proposal = proposalOf(advice, proposedMs);
  function adopt(retentionMs: number): void {
    propose(retentionMs);
    setChange({ kind: "set", retentionMs });
  }
  return (
    <>
      <Answer advice={advice} adopt={adopt} />
      {advice.observedSince === undefined || proposal === undefined ? (
        <Empty command={`onceward advice ${namespace}`}>
          No claim was counted in this namespace, so nothing is known about its duplicates.
        </Empty>
      ) : (
        <>
          <RetentionFigure namespace={namespace} advice={advice} proposedMs={proposedMs} propose={propose} />
          <LateRepeats namespace={namespace} />
          <Comparison advice={advice} proposal={proposal} />
          <TargetField />
        </>
      )}
      <PolicyChange
        namespace={namespace}
        retentionMs={advice.retentionMs}
        proposedMs={proposedMs}
        propose={propose}
        change={change}
        setChange={setChange}
      />
    </>
  );
}

/** The verdict in a sentence, and the button that follows it. */
function Answer({
  advice,
  adopt,
}: {
  readonly advice: Advice;
  readonly adopt: (retentionMs: number) => void;
}) {
  const verdict = judge(advice);
  const { tone, word } = nameVerdict(verdict);
  const better = advisedMs(verdict);
  return (
    <section className={styles.answer} data-tone={tone} aria-label="Is the retention long enough?">
      <p className={styles.verdict}>
        <StateMark tone={tone}>{`${word}: ${formatDuration(advice.retentionMs)}`}</StateMark>
      </p>
      <p>
        {describeVerdict(verdict)}{" "}
        {advice.observedSince !== undefined && (
          <span className={styles.quiet}>
            Observed since <TimeText at={advice.observedSince} form="absolute" />.
          </span>
        )}
      </p>
      {better !== undefined && (
        <button
          type="button"
          data-look={verdict.kind === "too short" ? "primary" : "plain"}
          onClick={() => adopt(better)}
        >
          Use {formatDuration(better)}
        </button>
      )}
    </section>
  );
}

/** The proposed retention, in the address, so that a view can be shared; the one in force unless another is proposed. */
function useProposal(retentionMs: number): readonly [number, (ms: number) => void] {
  const [parameters, setParameters] = useSearchParams();
  const proposed = parseDuration(parameters.get("to") ?? "") ?? retentionMs;
  function propose(ms: number): void {
    setParameters(
      (before) => {
        const after = new URLSearchParams(before);
        if (ms === retentionMs) after.delete("to");
        else after.set("to", formatDurationMs(ms));
        return after;
      },
      { replace: true },
    );
  }
  return [Math.max(1_000, proposed), propose];
}

function TargetField() {
  const [parameters, setParameters] = useSearchParams();
  function change(target: string): void {
    setParameters(
      (before) => {
        const after = new URLSearchParams(before);
        after.set("target", target);
        return after;
      },
      { replace: true },
    );
  }
  return (
    <div className={styles.target}>
      <SelectField
        label="Accepted late duplicates in a million claims"
        help="The advice names the shortest retention that keeps this, with a confidence of 95 %."
        value={parameters.get("target") ?? TARGETS[0]}
        onChange={(event) => change(event.target.value)}
      >
        {TARGETS.map((target) => (
          <option key={target} value={target}>
            {Number(target).toLocaleString("en")}
          </option>
        ))}
      </SelectField>
    </div>
  );
}
