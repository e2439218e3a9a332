import { useMutation, useQuery } from "@connectrpc/connect-query";
import { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import { useState } from "react";
import { useLocation } from "wouter";
import { commandLine, shellWord } from "../../format/command.ts";
import { formatNoun } from "../../format/quantity.ts";
import { ConfirmDialog } from "../../parts/confirm-dialog.tsx";
import { CliHint } from "../../parts/copy-button.tsx";
import { Unanswered } from "../../parts/list-states.tsx";
import { useNotice } from "../../parts/notice.tsx";
import { useRefresh } from "../../parts/refresh.ts";
import {
  EMPTY_RESULT,
  isResolvable,
  RESOLUTIONS,
  type ResolutionKind,
  type ResultDraft,
  resolutionMessage,
} from "../../parts/resolution/resolution.ts";
import { ResultFields } from "../../parts/resolution/result-fields.tsx";
import { readFailure } from "../../session/failure.ts";
import { type Filters, filterWords, whichOf } from "./filters.ts";

interface MatchingDialogProps {
  readonly filters: Filters;
  readonly kind: ResolutionKind;
  readonly close: () => void;
}

/** Resolves all ambiguous records that match the filters of the queue, as one job: those that were counted, or none. */
export function MatchingDialog({ filters, kind, close }: MatchingDialogProps) {
  const [draft, setDraft] = useState(EMPTY_RESULT);
  const which = { namespace: filters.namespace, ...whichOf(filters) };
  const method = TenantAdminService.method.resolveAmbiguousRecords;
  const count = useQuery(
    method,
    // Counts, and changes nothing: the reason is kept nowhere.
    { ...which, validateOnly: true, reason: "count", resolution: { case: "release", value: {} } },
    { staleTime: 0, gcTime: 0 },
  );
  const resolve = useMutation(method);
  const refresh = useRefresh();
  const notify = useNotice();
  const [, navigate] = useLocation();
  const { answer, meaning } = RESOLUTIONS[kind];
  const { matching = 0n, isLowerBound = false } = count.data ?? {};
  const records = formatNoun(matching, "record", "records");

  async function act(reason: string): Promise<void> {
    const resolution = resolutionMessage(kind, draft);
    try {
      const { job } = await resolve.mutateAsync({ ...which, reason, resolution, expectedCount: matching });
      notify(`Job ${job?.id} resolves ${records}. Each change is effective on every replica within 10 s.`);
      void refresh(TenantAdminService);
      if (job !== undefined) navigate(`/jobs/${job.id}`);
    } catch (error) {
      if (readFailure(error).reason === "RECORD_COUNT_MISMATCH") await count.refetch();
      throw error;
    }
  }

  return (
    <ConfirmDialog
      title={`${answer}: all ${records} that match`}
      action={`${answer}: ${records}`}
      look={kind === "forget" ? "danger" : "plain"}
      reason="required"
      isValid={matching > 0n && !isLowerBound && isResolvable(kind, draft)}
      {...(kind === "forget" && { typed: String(matching) })}
      act={act}
      close={close}
    >
      {count.data === undefined && <Unanswered query={count} rows={2} />}
      {isLowerBound && (
        <p>At least {records} match: there was no time to count all. Filter by a namespace or an owner.</p>
      )}
      <p>All ambiguous records {filterWords(filters) || "of the tenant"}.</p>
      <p>{meaning}</p>
      {kind === "complete" && <ResultFields draft={draft} change={setDraft} />}
      <p>A record that is no longer ambiguous when its turn comes is skipped.</p>
      <CliHint command={commandFor(filters, kind, draft)} />
    </ConfirmDialog>
  );
}

/** Returns the command line that counts the same records. */
function commandFor({ namespace, owner, checkpoint, before }: Filters, kind: string, result: ResultDraft) {
  const where = namespace === "" ? "onceward records resolve" : `onceward records resolve ${namespace}`;
  const option = result.outcome === "success" ? "complete" : "failure";
  const resolution = kind === "complete" ? `--${option} ${shellWord(result.text)}` : `--${kind}`;
  const options = { owner, checkpoint, "lease-expired-before": before };
  return `${commandLine(where, options)} --all-matching ${resolution} --dry-run`;
}
