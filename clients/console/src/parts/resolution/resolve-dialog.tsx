import { useMutation } from "@connectrpc/connect-query";
import type { Record } from "@onceward/gen/onceward/v1/record_pb.ts";
import { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import { useState } from "react";
import { ConfirmDialog } from "../confirm-dialog.tsx";
import { useNotice } from "../notice.tsx";
import { leaseOf } from "../record-lease.ts";
import { Time } from "../time.tsx";
import { UserText } from "../user-text.tsx";
import {
  EMPTY_RESULT,
  isResolvable,
  RESOLUTIONS,
  type ResolutionKind,
  resolutionMessage,
  typedName,
} from "./resolution.ts";
import { ResultFields } from "./result-fields.tsx";
import { useRecordRefresh } from "./use-record-refresh.ts";

interface ResolveDialogProps {
  readonly record: Record;
  readonly kind: ResolutionKind;
  readonly close: () => void;
  /** Called after the change, before `close`. */
  readonly resolved?: () => void;
}

/**
 * Resolves one record, for a reason that the audit keeps. The record's fencing token is sent along: a record that was claimed
 * by another holder since it was shown is refused (CLAIM_SUPERSEDED).
 */
export function ResolveDialog({ record, kind, close, resolved }: ResolveDialogProps) {
  const [draft, setDraft] = useState(EMPTY_RESULT);
  const resolve = useMutation(TenantAdminService.method.resolveRecord);
  const refresh = useRecordRefresh();
  const notify = useNotice();
  const { verb, done, meaning } = RESOLUTIONS[kind];

  async function act(reason: string): Promise<void> {
    const { namespace, key, fencingToken } = record;
    const resolution = resolutionMessage(kind, draft);
    try {
      await resolve.mutateAsync({ namespace, key, fencingToken, reason, resolution });
    } finally {
      // After a refusal, too: the record is no longer as it was shown.
      refresh();
    }
    notify(`The record is ${done}. Every replica follows within 10 s.`);
    resolved?.();
  }

  return (
    <ConfirmDialog
      title={`${verb} a record`}
      action={verb}
      look={kind === "forget" ? "danger" : "plain"}
      reason="required"
      isValid={isResolvable(kind, draft)}
      {...(kind === "forget" && { typed: typedName(record) })}
      act={act}
      close={close}
    >
      <p>{meaning}</p>
      <RecordFacts record={record} />
      {kind === "complete" && <ResultFields draft={draft} change={setDraft} />}
    </ConfirmDialog>
  );
}

function RecordFacts({ record }: { readonly record: Record }) {
  const { namespace, key, owner, checkpoint, leaseExpiresAt } = record;
  return (
    <dl>
      <dt>Key</dt>
      <dd>
        <UserText>{key}</UserText>
      </dd>
      <dt>Namespace</dt>
      <dd>{namespace}</dd>
      <dt>Owner</dt>
      <dd>{owner === "" ? "none" : <UserText>{owner}</UserText>}</dd>
      <dt>Last checkpoint</dt>
      <dd>{checkpoint === undefined ? "none" : <UserText>{checkpoint.name}</UserText>}</dd>
      {leaseOf(record, new Date()) !== "settled" && (
        <>
          <dt>Lease ends</dt>
          <dd>
            <Time at={leaseExpiresAt} />
          </dd>
        </>
      )}
    </dl>
  );
}
