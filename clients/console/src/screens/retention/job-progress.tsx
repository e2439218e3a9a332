import { useQuery } from "@connectrpc/connect-query";
import { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import { type RecordJob, RecordJob_State } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { Link } from "wouter";
import { formatCount } from "../../format/quantity.ts";
import { ErrorState } from "../../parts/list-states.tsx";
import { StateMark, type StateTone } from "../../parts/state-mark.tsx";
import { Time } from "../../parts/time.tsx";
import styles from "./retention.module.css";

/** A person waits for this job. */
const REFRESH_MS = 1_000;

/** Shows the progress of the job that changes existing records, until it is finished. */
export function JobProgress({ id }: { readonly id: bigint }) {
  const answer = useQuery(
    TenantAdminService.method.getRecordJob,
    { id },
    { refetchInterval: ({ state: { data } }) => (data?.job?.finishedAt === undefined ? REFRESH_MS : false) },
  );
  if (answer.error !== null) return <ErrorState error={answer.error} retry={answer.refetch} />;
  const job = answer.data?.job;
  if (job === undefined) return undefined;
  return (
    <section className={styles.job} aria-label="Change of existing records">
      <p role="status">
        <StateMark tone={TONES[job.state] ?? "quiet"}>{WORDS[job.state] ?? "Unknown"}</StateMark>{" "}
        <Link href="/jobs">Job {`${id}`}</Link> changes existing records: {describeProgress(job)}.
      </p>
      {job.state === RecordJob_State.WAITING && (
        <p>
          It begins when every replica uses the new policy: <Time at={job.startsAt} />.
        </p>
      )}
    </section>
  );
}

const WORDS: Readonly<Partial<Record<RecordJob_State, string>>> = {
  [RecordJob_State.WAITING]: "Waiting",
  [RecordJob_State.RUNNING]: "Running",
  [RecordJob_State.DONE]: "Done",
  [RecordJob_State.CANCELLED]: "Cancelled",
};

const TONES: Readonly<Partial<Record<RecordJob_State, StateTone>>> = {
  [RecordJob_State.WAITING]: "quiet",
  [RecordJob_State.RUNNING]: "busy",
  [RecordJob_State.DONE]: "good",
  [RecordJob_State.CANCELLED]: "quiet",
};

function describeProgress({ recordsExamined, recordsChanged, recordsForgotten }: RecordJob): string {
  const counts = [
    [recordsExamined, "examined"],
    [recordsChanged, "changed"],
    [recordsForgotten, "forgotten"],
  ] as const;
  return counts.map(([count, word]) => `${formatCount(count)} ${word}`).join(", ");
}
