import { useMutation } from "@connectrpc/connect-query";
import { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import { useState } from "react";
import { useLocation } from "wouter";
import { formatNoun } from "../../format/quantity.ts";
import { CliHint } from "../../parts/cli-hint.tsx";
import { ConfirmDialog } from "../../parts/confirm-dialog.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { useNotice } from "../../parts/notice.tsx";
import { RESOLUTIONS } from "../../parts/resolution/resolution.ts";
import { useRecordRefresh } from "../../parts/resolution/use-record-refresh.ts";
import { UserText } from "../../parts/user-text.tsx";
import { readFailure } from "../../session/failure.ts";
import { type BulkDraft, bulkCommand, draftOf, resolveRequest } from "./bulk.ts";
import styles from "./bulk-dialog.module.css";
import { BulkForm, type Counted } from "./bulk-form.tsx";

interface BulkDialogProps {
  /** What the queue shows; the dialog begins with the same records. */
  readonly filters: Pick<BulkDraft, "namespace" | "owner" | "before">;
  readonly close: () => void;
}

/** Resolves many ambiguous records: first they are counted, then the count is typed, and a job changes them. */
export function BulkDialog({ filters, close }: BulkDialogProps) {
  const [draft, setDraft] = useState(() => draftOf(filters));
  const [counted, setCounted] = useState<Counted>();
  if (counted === undefined) {
    return <BulkForm draft={draft} change={setDraft} counted={setCounted} close={close} />;
  }
  const step = { draft, counted, back: () => setCounted(undefined), close };
  if (counted.isLowerBound || counted.matching === 0n) return <NothingToConfirm {...step} />;
  return <BulkConfirm {...step} recount={setCounted} />;
}

interface StepProps {
  readonly draft: BulkDraft;
  readonly counted: Counted;
  /** Leads back to the form, with what was typed. */
  readonly back: () => void;
  readonly close: () => void;
}

function NothingToConfirm({ draft, counted, back, close }: StepProps) {
  const count = formatNoun(counted.matching, "ambiguous record", "ambiguous records");
  return (
    <Dialog title={counted.isLowerBound ? "Too many to count" : "Nothing matches"} close={close}>
      <p>
        {counted.isLowerBound
          ? `At least ${count} match: there was no time to count all, and only an exact number can be confirmed. Choose a namespace or an owner.`
          : "No ambiguous record matches. Nothing was changed."}
      </p>
      <Selection draft={draft} />
      <button type="button" onClick={back}>
        Back
      </button>
    </Dialog>
  );
}

function BulkConfirm({
  draft,
  counted,
  back,
  close,
  recount,
}: StepProps & { readonly recount: (counted: Counted) => void }) {
  const resolve = useMutation(TenantAdminService.method.resolveAmbiguousRecords);
  const refresh = useRecordRefresh();
  const notify = useNotice();
  const [, navigate] = useLocation();
  const { verb, meaning } = RESOLUTIONS[draft.kind];
  const count = formatNoun(counted.matching, "ambiguous record", "ambiguous records");

  async function act(): Promise<void> {
    try {
      const { job } = await resolve.mutateAsync(resolveRequest(draft, counted.matching));
      notify(`Job ${job?.id} resolves ${count}. Each change is effective on every replica within 10 s.`);
      refresh();
      if (job !== undefined) navigate(`/jobs/${job.id}`);
    } catch (error) {
      const { reason, metadata } = readFailure(error);
      if (reason === "RECORD_COUNT_MISMATCH" && metadata.actual_count !== undefined) {
        const isLowerBound = metadata.is_lower_bound === "true";
        recount({ matching: BigInt(metadata.actual_count), isLowerBound });
      }
      throw error;
    }
  }

  return (
    <ConfirmDialog
      title={`${verb} ${count}`}
      action={`${verb} ${count}`}
      look={draft.kind === "forget" ? "danger" : "plain"}
      typed={String(counted.matching)}
      act={act}
      close={close}
    >
      <p>{meaning}</p>
      <Selection draft={draft} />
      <p className={styles.note}>
        A record that is no longer ambiguous when its turn comes is left alone.{" "}
        <button type="button" data-look="link" onClick={back}>
          Change the selection
        </button>
      </p>
      <CliHint command={bulkCommand(draft)} />
    </ConfirmDialog>
  );
}

function Selection({
  draft: { namespace, owner, checkpoint, before, reason },
}: {
  readonly draft: BulkDraft;
}) {
  const facts = [
    ["Namespace", namespace, "all"],
    ["Owner", owner, "any"],
    ["Last checkpoint", checkpoint, "any, or none"],
    ["Ambiguous since before", before, "now"],
    ["Reason", reason, ""],
  ] as const;
  return (
    <dl className={styles.facts}>
      {facts.map(([name, value, otherwise]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value === "" ? otherwise : <UserText>{value}</UserText>}</dd>
        </div>
      ))}
    </dl>
  );
}
