import { useMutation } from "@connectrpc/connect-query";
import { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import { type RecordJob, RecordJob_State } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { CANCEL_JOB } from "@onceward/words/changes";
import { isUnfinished, progressOf, titleOf } from "@onceward/words/job-words";
import { useState } from "react";
import { ConfirmDialog } from "../../parts/confirm-dialog.tsx";
import { useNotice } from "../../parts/notice.tsx";
import { useRefresh } from "../../parts/refresh.ts";
import styles from "../../styles/screens.module.css";
import { shareOf } from "./job-words.ts";

/** Shows a job's progress in words, and as a bar where the whole is known. */
export function JobProgress({ job }: { readonly job: RecordJob }) {
  const share = shareOf(job);
  return (
    <span className={styles.progress}>
      {isUnfinished(job) && share !== undefined && (
        <progress value={share} max={1} aria-label={`Progress of job ${job.id}`} />
      )}
      {progressOf(job)}
    </span>
  );
}

/** Ends a job that is not finished, after a question. Nothing is shown for a finished one. */
export function CancelButton({ job, look }: { readonly job: RecordJob; readonly look: "row" | "screen" }) {
  const [isAsking, setAsking] = useState(false);
  const cancel = useMutation(TenantAdminService.method.cancelRecordJob);
  const refresh = useRefresh();
  const notify = useNotice();

  async function act(): Promise<void> {
    const { job: ended } = await cancel.mutateAsync({ id: job.id });
    void refresh(TenantAdminService);
    const isCancelled = ended?.state === RecordJob_State.CANCELLED;
    notify(
      `Job ${job.id} ${isCancelled ? "is cancelled" : "was done already"}: ${progressOf(ended ?? job)}.`,
    );
  }

  return (
    <>
      {isUnfinished(job) && (
        <button
          type="button"
          {...(look === "row" && { "data-look": "rare", "aria-label": `Cancel job ${job.id}` })}
          onClick={() => setAsking(true)}
        >
          {look === "row" ? "Cancel" : "Cancel the job"}
        </button>
      )}
      {isAsking && (
        <ConfirmDialog
          title={`Cancel job ${job.id}`}
          action="Cancel the job"
          look="danger"
          act={act}
          close={() => setAsking(false)}
        >
          <p>
            {titleOf(job)}
            {job.namespace !== "" && ` in ${job.namespace}`}: {progressOf(job)}.
          </p>
          <p>{CANCEL_JOB}</p>
        </ConfirmDialog>
      )}
    </>
  );
}
