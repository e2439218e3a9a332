import { useMutation, useQuery } from "@connectrpc/connect-query";
import { type CountRecordsResponse, TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import type { Namespace } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { useState } from "react";
import { useLocation } from "wouter";
import { formatNoun } from "../../format/quantity.ts";
import { ConfirmDialog } from "../../parts/confirm-dialog.tsx";
import { Unanswered } from "../../parts/list-states.tsx";
import { useNotice } from "../../parts/notice.tsx";
import { useRefresh } from "../../parts/refresh.ts";
import styles from "../../styles/screens.module.css";

interface DeleteNamespaceProps {
  readonly namespace: Namespace;
  readonly close: () => void;
}

/** Asks before a namespace's policy is deleted: the name has to be typed. A namespace with records is emptied with it. */
export function DeleteNamespace({ namespace: { name, etag }, close }: DeleteNamespaceProps) {
  const counts = useQuery(TenantAdminService.method.countRecords, { namespace: name });
  const remove = useMutation(TenantAdminService.method.deleteNamespace);
  const refresh = useRefresh();
  const notify = useNotice();
  const [, navigate] = useLocation();
  const [force, setForce] = useState(false);
  const records = counts.data && countOf(counts.data);
  const isReady = records !== undefined && (isEmpty(records) || force);

  async function act(): Promise<void> {
    if (!isReady)
      throw new Error("Tick that the records are forgotten, too: a namespace with records stays.");
    const { job } = await remove.mutateAsync({ name, etag, force });
    navigate("/namespaces");
    notify(
      job === undefined
        ? `Deleted the policy of ${name}.`
        : `Deleted the policy of ${name}. Job ${job.id} forgets its records.`,
    );
    await refresh(TenantAdminService);
  }

  return (
    <ConfirmDialog
      title={`Delete the policy of ${name}?`}
      action={force ? "Delete, and forget the records" : "Delete the policy"}
      typed={name}
      look="danger"
      act={act}
      close={close}
    >
      <p>The namespace then follows the tenant's policy. Its values can't be brought back.</p>
      {records === undefined ? (
        <Unanswered query={counts} rows={1} />
      ) : (
        <RecordsNote records={records} force={force} setForce={setForce} />
      )}
    </ConfirmDialog>
  );
}

interface RecordsNoteProps {
  readonly records: CountedRecords;
  readonly force: boolean;
  readonly setForce: (force: boolean) => void;
}

function RecordsNote({ records, force, setForce }: RecordsNoteProps) {
  const { count, ambiguous, isLowerBound } = records;
  if (isEmpty(records)) return <p>It has no records.</p>;
  const prefix = isLowerBound ? "at least " : "";
  return (
    <>
      <p>
        It has {prefix}
        {formatNoun(count, "record", "records")}
        {ambiguous > 0n && `, of which ${formatNoun(ambiguous, "is", "are")} ambiguous`}: it can only be
        deleted together with them.
      </p>
      <label className={styles.tick}>
        <input type="checkbox" checked={force} onChange={(event) => setForce(event.target.checked)} />
        <span>
          Forget the records, as if their keys had never been claimed: a duplicate of any of them does its
          effect a second time.
        </span>
      </label>
    </>
  );
}

/** How many records a namespace has. */
interface CountedRecords {
  readonly count: bigint;
  readonly ambiguous: bigint;
  /** The server did not examine all records for one answer. */
  readonly isLowerBound: boolean;
}

/** Returns the records of one answer, of every state. */
function countOf(answer: CountRecordsResponse): CountedRecords {
  const { inProgress, lapsed, completed, released, ambiguous, nextPageToken } = answer;
  const count = inProgress + lapsed + completed + released + ambiguous;
  return { count, ambiguous, isLowerBound: nextPageToken !== "" };
}

/** Returns whether a namespace is known to have no record. */
function isEmpty({ count, isLowerBound }: CountedRecords): boolean {
  return count === 0n && !isLowerBound;
}
