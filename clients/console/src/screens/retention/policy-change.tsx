import { Code } from "@connectrpc/connect";
import { useQuery } from "@connectrpc/connect-query";
import { formatDurationMs } from "@onceward/decode/durations.ts";
import { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import type { Namespace } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { type FormEvent, useState } from "react";
import { formatDuration } from "../../format/duration.ts";
import { CliHint } from "../../parts/cli-hint.tsx";
import { TextField } from "../../parts/field.tsx";
import { ErrorState } from "../../parts/list-states.tsx";
import { readFailure } from "../../session/failure.ts";
import { type Change, commandFor, parseRetention } from "./change.ts";
import { ChangeDialog, type Conflict } from "./change-dialog.tsx";
import styles from "./retention.module.css";

interface PolicyChangeProps {
  readonly namespace: string;
  /** The retention in force. */
  readonly retentionMs: number;
  readonly proposedMs: number;
  readonly propose: (ms: number) => void;
  /** The change that is previewed; undefined: none. */
  readonly change: Change | undefined;
  readonly setChange: (change: Change | undefined) => void;
}

/** Where the retention comes from, and the change to the proposed one. */
export function PolicyChange(props: PolicyChangeProps) {
  const { namespace, retentionMs, proposedMs, propose, change, setChange } = props;
  const [conflict, setConflict] = useState<Conflict>();
  const holder = useQuery(TenantAdminService.method.getNamespace, { name: namespace });
  const isUndeclared = holder.error !== null && readFailure(holder.error).code === Code.NotFound;
  if (holder.error !== null && !isUndeclared) {
    return <ErrorState error={holder.error} retry={holder.refetch} />;
  }
  if (holder.data === undefined && !isUndeclared) return <div aria-busy="true" />;
  const declared = holder.data?.namespace;
  const isOwn = declared?.policy?.keyRetention !== undefined;
  return (
    <>
      <h2>Change the retention</h2>
      <p>
        <Origin declared={declared} retentionMs={retentionMs} />
      </p>
      {conflict !== undefined && <ConflictNote conflict={conflict} />}
      <ProposalForm
        proposedMs={proposedMs}
        retentionMs={retentionMs}
        propose={propose}
        preview={setChange}
        isOwn={isOwn}
      />
      <CliHint command={commandFor(namespace, { kind: "set", retentionMs: proposedMs })} />
      {change !== undefined && (
        <ChangeDialog
          namespace={namespace}
          declared={declared}
          change={change}
          report={setConflict}
          close={() => setChange(undefined)}
        />
      )}
    </>
  );
}

/** Returns whether the retention is the namespace's own, the tenant's or the service's default. */
function Origin({
  declared,
  retentionMs,
}: {
  readonly declared: Namespace | undefined;
  readonly retentionMs: number;
}) {
  const tenant = useQuery(TenantAdminService.method.getTenant, {});
  const now = formatDuration(retentionMs);
  if (declared?.policy?.keyRetention !== undefined) {
    return `${now} is set by this namespace itself: a change of the tenant's retention does not reach it.`;
  }
  const name =
    declared === undefined ? "This namespace has no policy of its own" : "It sets no key retention";
  const tenantsOwn = tenant.data?.tenant?.policy?.keyRetention;
  if (tenant.data === undefined) return `${name}: ${now} is inherited.`;
  return tenantsOwn === undefined
    ? `${name}: ${now} is the service's default. A change here concerns this namespace only.`
    : `${name}: ${now} is the tenant's. A change here concerns this namespace only.`;
}

function ConflictNote({ conflict }: { readonly conflict: Conflict }) {
  return (
    <div role="alert" className={styles.conflict}>
      <p>
        Nothing was changed: another administrator changed this policy in the meantime. Key retention was{" "}
        <strong>{conflict.was}</strong> when you looked, and is <strong>{conflict.is}</strong> now. You
        proposed <strong>{conflict.proposed}</strong>. Preview it again to decide.
      </p>
    </div>
  );
}

interface ProposalFormProps {
  readonly proposedMs: number;
  readonly retentionMs: number;
  readonly propose: (ms: number) => void;
  readonly preview: (change: Change) => void;
  /** The namespace sets its retention itself, and could follow the tenant's instead. */
  readonly isOwn: boolean;
}

/** Each text that is a retention moves the line, the table and the command at once. */
function ProposalForm({ proposedMs, retentionMs, propose, preview, isOwn }: ProposalFormProps) {
  const [typed, setTyped] = useState({ ms: proposedMs, text: formatDurationMs(proposedMs) });
  // The line was moved since.
  const text = typed.ms === proposedMs ? typed.text : formatDurationMs(proposedMs);
  const isValid = parseRetention(text) !== undefined;
  function type(next: string): void {
    const ms = parseRetention(next);
    setTyped({ ms: ms ?? proposedMs, text: next });
    if (ms !== undefined) propose(ms);
  }
  function submit(event: FormEvent): void {
    event.preventDefault();
    if (isValid && proposedMs !== retentionMs) preview({ kind: "set", retentionMs: proposedMs });
  }
  return (
    <form className={styles.change} onSubmit={submit}>
      <TextField
        label="Proposed key retention"
        value={text}
        maxLength={16}
        problem={isValid ? undefined : "From 1m to 400d: a whole number and a unit, such as 72h or 7d."}
        onChange={(event) => type(event.target.value)}
      />
      <button type="submit" aria-disabled={!isValid || proposedMs === retentionMs}>
        Preview the change
      </button>
      {isOwn && (
        <button type="button" onClick={() => preview({ kind: "inherit" })}>
          Follow the tenant's retention
        </button>
      )}
    </form>
  );
}
