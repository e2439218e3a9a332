import { Code } from "@connectrpc/connect";
import { useQuery } from "@connectrpc/connect-query";
import { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import { type RecordJob, RecordJob_Kind, RecordJob_State } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { isUnfinished, titleOf } from "@onceward/words/job-words";
import { Link, useParams } from "wouter";
import { formatCount } from "../../format/quantity.ts";
import { CliHint } from "../../parts/copy-button.tsx";
import { Facts } from "../../parts/facts.tsx";
import { Empty, Unanswered } from "../../parts/list-states.tsx";
import { StateMark } from "../../parts/state-mark.tsx";
import { Time } from "../../parts/time.tsx";
import { readFailure } from "../../session/failure.ts";
import { useLiveInterval } from "../../shell/live.ts";
import { Screen } from "../../shell/screen.tsx";
import common from "../../styles/common.module.css";
import { CancelButton, JobProgress } from "./job-parts.tsx";
import { auditPathOf, changedRecords, parseJobId, stateOf } from "./job-words.ts";

const REFRESH_MS = 2_000;

/** One background change of records, and its progress. */
export default function JobScreen() {
  const id = parseJobId(useParams().id ?? "");
  return (
    <Screen title={id === undefined ? "Job" : `Job ${id}`} parent={["/jobs", "All jobs"]}>
      {id === undefined ? (
        <Empty command="onceward jobs list">There is no such job.</Empty>
      ) : (
        <Content id={id} />
      )}
    </Screen>
  );
}

function Content({ id }: { readonly id: bigint }) {
  const live = useLiveInterval(REFRESH_MS);
  const reply = useQuery(
    TenantAdminService.method.getRecordJob,
    { id },
    { refetchInterval: ({ state: { data } }) => data?.job && isUnfinished(data.job) && live },
  );
  if (reply.error !== null && readFailure(reply.error).code === Code.NotFound) {
    return <Empty command="onceward jobs list">There is no such job, or it is no longer stored.</Empty>;
  }
  const job = reply.data?.job;
  if (job === undefined) return <Unanswered query={reply} rows={8} />;
  return (
    <>
      <JobFacts job={job} />
      <p>
        <CancelButton job={job} look="screen" />
      </p>
      <CliHint command={`onceward jobs show ${id} --watch`} />
    </>
  );
}

function JobFacts({ job }: { readonly job: RecordJob }) {
  const { kind, namespace, state, recordsExamined, recordsLeftAlone, createdAt, startsAt, finishedAt } = job;
  const { note, list } = changedRecords(job);
  return (
    <Facts
      of={{
        "What it does": titleOf(job),
        Namespace: namespace || "all",
        State: <StateMark {...stateOf(job)} />,
        Progress: <JobProgress job={job} />,
        "Records examined": formatCount(recordsExamined),
        "No longer ambiguous": kind === RecordJob_Kind.RESOLVE && formatCount(recordsLeftAlone),
        "Changed records": (
          <>
            {list && <Link href={list.path}>{list.label}</Link>}
            {note !== "" && <div className={common.quiet}>{note}</div>}
          </>
        ),
        Audit: <Link href={auditPathOf(job)}>Audit events of this change</Link>,
        Created: <Time at={createdAt} form="both" />,
        [state === RecordJob_State.WAITING ? "Begins" : "Began"]: <Time at={startsAt} form="both" />,
        Finished: <Time at={finishedAt} form="both" />,
      }}
    />
  );
}
