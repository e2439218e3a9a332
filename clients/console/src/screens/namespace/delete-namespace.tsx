import { useMutation, useQuery } from "@connectrpc/connect-query";
import { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import type { Namespace } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { useState } from "react";
import { useLocation } from "wouter";
import { formatNoun } from "../../format/quantity.ts";
import { ConfirmDialog } from "../../parts/confirm-dialog.tsx";
import { ErrorState, Loading } from "../../parts/list-states.tsx";
import { useNotice } from "../../parts/notice.tsx";
import { useForgetPolicies } from "../../policy/policy-queries.ts";
import styles from "../../styles/screens.module.css";
import { type CountedRecords, countOf, isEmpty } from "./counted-records.ts";

interface DeleteNamespaceProps {
  readonly namespace: Namespace;
  readonly close: () => void;
}

/** Asks before a namespace's policy is deleted: the name has to be typed. A namespace with records is emptied with it. */
export function DeleteNamespace({ namespace: { name, etag }, close }: DeleteNamespaceProps) {
  const counts = useQuery(TenantAdminService.method.countRecords, { namespace: name });
  const remove = useMutation(TenantAdminService.method.deleteNamespace);
  const forgetPolicies = useForgetPolicies();
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
    await forgetPolicies();
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
      {counts.error !== null && <ErrorState error={counts.error} retry={counts.refetch} />}
      {counts.error === null && records === undefined && <Loading rows={1} />}
      {records !== undefined && <RecordsNote records={records} force={force} setForce={setForce} />}
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
