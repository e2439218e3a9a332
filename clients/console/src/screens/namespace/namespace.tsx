import { useMutation, useQuery } from "@connectrpc/connect-query";
import { NAMESPACE_PATTERN } from "@onceward/gen/limits.ts";
import { type CountRecordsResponse, TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import type { Namespace } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { DELETE_POLICY, FORGET_RECORDS } from "@onceward/words/changes";
import { useState } from "react";
import { Link, useLocation, useParams } from "wouter";
import { formatNoun } from "../../format/quantity.ts";
import { ConfirmDialog, DeletePart } from "../../parts/confirm-dialog.tsx";
import { Empty, Unanswered } from "../../parts/list-states.tsx";
import { MisspeltNote } from "../../parts/namespace-links.tsx";
import { useNotice } from "../../parts/notice.tsx";
import { useRefresh } from "../../parts/refresh.ts";
import { StateMark } from "../../parts/state-mark.tsx";
import { Time } from "../../parts/time.tsx";
import { FIELD_NAMES } from "../../policy/policy-fields.ts";
import { Screen } from "../../shell/screen.tsx";
import common from "../../styles/common.module.css";
import styles from "../../styles/screens.module.css";
import { NamespacePolicy, useNamespace } from "./namespace-policy.tsx";

/** The screen of one namespace: its policy beside the tenant's. Declares it if it is not. */
export default function NamespaceScreen() {
  const { name = "" } = useParams<{ name: string }>();
  if (!NAMESPACE_PATTERN.test(name)) {
    return (
      <Screen title="Namespace">
        <Empty command="onceward namespaces list">This is not the name of a namespace: {name}</Empty>
      </Screen>
    );
  }
  // A new name is a new form.
  return <NamespaceOf key={name} name={name} />;
}

function NamespaceOf({ name }: { readonly name: string }) {
  const found = useNamespace(name);
  const tenant = useQuery(TenantAdminService.method.getTenant);
  const namespace = found.data?.namespace;
  const both = {
    error: found.error ?? tenant.error,
    refetch: () => Promise.all([found.refetch(), tenant.refetch()]),
  };
  return (
    <Screen
      title={name}
      parent={["/namespaces", "All namespaces"]}
      lead="Whether keys are remembered for long enough, and the policy of the namespace."
    >
      {found.data === undefined || tenant.data?.tenant === undefined ? (
        <Unanswered query={both} rows={FIELD_NAMES.length * 2} />
      ) : (
        <>
          <div className={common.links}>
            {namespace === undefined ? (
              <span>
                <StateMark tone="attention" word="Not declared" />: it follows the tenant's policy.
              </span>
            ) : (
              <span>
                Declared <Time at={namespace.createdAt} />
              </span>
            )}
            <Link href={`/records?namespace=${name}`}>Records</Link>
            <Link href={`/key-quality?namespace=${name}`}>Key quality</Link>
            <Link href={`/audit?${new URLSearchParams({ target: `namespace ${name}` })}`}>Audit</Link>
          </div>
          {namespace === undefined && <MisspeltNote name={name} />}
          <NamespacePolicy name={name} namespace={namespace} tenant={tenant.data.tenant} />
          {namespace !== undefined && (
            <DeletePart
              action="Delete the namespace"
              dialog={(close) => <DeleteNamespace namespace={namespace} close={close} />}
            >
              Forgets its records, too: a duplicate of any of them does its effect a second time. To inherit a
              value, empty its field instead.
            </DeletePart>
          )}
        </>
      )}
    </Screen>
  );
}

interface DeleteNamespaceProps {
  readonly namespace: Namespace;
  readonly close: () => void;
}

/** Asks before a namespace's policy is deleted: the name has to be typed. A namespace with records is emptied with it. */
function DeleteNamespace({ namespace: { name, etag }, close }: DeleteNamespaceProps) {
  const counts = useQuery(TenantAdminService.method.countRecords, { namespace: name });
  const remove = useMutation(TenantAdminService.method.deleteNamespace);
  const refresh = useRefresh();
  const notify = useNotice();
  const [, navigate] = useLocation();
  const [force, setForce] = useState(false);
  const records = counts.data && countOf(counts.data);
  const isReady = records !== undefined && (records.isEmpty || force);

  async function act(): Promise<void> {
    if (!isReady) throw new Error("Tick that the records are forgotten, too.");
    const { job } = await remove.mutateAsync({ name, etag, force });
    navigate("/namespaces");
    notify(`Deleted the namespace ${name}.${job ? ` Job ${job.id} forgets its records.` : ""}`);
    await refresh(TenantAdminService);
  }

  return (
    <ConfirmDialog
      title={`Delete the namespace ${name}?`}
      action={force ? "Delete, and forget the records" : "Delete the namespace"}
      typed={name}
      look="danger"
      act={act}
      close={close}
    >
      <p>{DELETE_POLICY}</p>
      {records === undefined ? (
        <Unanswered query={counts} rows={1} />
      ) : (
        <RecordsNote records={records} force={force} setForce={setForce} />
      )}
    </ConfirmDialog>
  );
}

interface RecordsNoteProps {
  readonly records: ReturnType<typeof countOf>;
  readonly force: boolean;
  readonly setForce: (force: boolean) => void;
}

function RecordsNote({ records, force, setForce }: RecordsNoteProps) {
  const { count, ambiguous, isEmpty, isLowerBound } = records;
  if (isEmpty) return <p>It has no records.</p>;
  const prefix = isLowerBound ? "at least " : "";
  return (
    <>
      <p>
        It has {prefix}
        {formatNoun(count, "record", "records")}
        {ambiguous > 0n && `, of which ${formatNoun(ambiguous, "is", "are")} ambiguous`}, and is deleted with
        them.
      </p>
      <label className={styles.tick}>
        <input type="checkbox" checked={force} onChange={(event) => setForce(event.target.checked)} />
        <span>{FORGET_RECORDS}</span>
      </label>
    </>
  );
}

/** Returns the records of one answer, of every state. `isLowerBound`: the server did not examine all for one answer. */
function countOf(answer: CountRecordsResponse) {
  const { inProgress, lapsed, completed, released, ambiguous, nextPageToken } = answer;
  const count = inProgress + lapsed + completed + released + ambiguous;
  const isLowerBound = nextPageToken !== "";
  return { count, ambiguous, isLowerBound, isEmpty: count === 0n && !isLowerBound };
}
