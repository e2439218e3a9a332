import { durationMs } from "@bufbuild/protobuf/wkt";
import { createQueryOptions, useMutation, useQuery, useTransport } from "@connectrpc/connect-query";
import type { Policy } from "@onceward/gen/onceward/v1/policy_pb.ts";
import { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import type { Namespace, RetentionEffect } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useSearchParams } from "wouter";
import { formatDuration } from "../../format/duration.ts";
import { formatNoun } from "../../format/quantity.ts";
import { ConfirmDialog } from "../../parts/confirm-dialog.tsx";
import { DataTable } from "../../parts/data-table.tsx";
import { ErrorState, Loading } from "../../parts/list-states.tsx";
import { useNotice } from "../../parts/notice.tsx";
import { useRefresh } from "../../parts/refresh.ts";
import { readFailure } from "../../session/failure.ts";
import { type Change, compareRetentions, requestFor } from "./change.ts";

/** A change that was refused because the policy had changed: retentions in words. */
export interface Conflict {
  readonly was: string;
  readonly is: string;
  readonly proposed: string;
}

interface ChangeDialogProps {
  readonly namespace: string;
  /** The namespace as the person saw it; undefined: it was never declared. */
  readonly declared: Namespace | undefined;
  readonly change: Change;
  /** Called with a conflict, or with undefined once a change was made. */
  readonly report: (conflict: Conflict | undefined) => void;
  readonly close: () => void;
}

/** Previews a change by the API's own dry run, and makes it; the namespace's name is typed before a shorter retention. */
export function ChangeDialog({ namespace, declared, change, report, close }: ChangeDialogProps) {
  // What the person saw when the dialog opened: a refresh behind it must not change what is confirmed.
  const [seen] = useState(declared);
  const [chosen, setChosen] = useState<boolean>();
  const request = requestFor(namespace, change, seen?.etag ?? "");
  const preview = useQuery(
    TenantAdminService.method.updateNamespace,
    { ...request, validateOnly: true },
    { staleTime: 0, gcTime: 0 },
  );
  const tenant = useQuery(TenantAdminService.method.getTenant, {}, { enabled: seen === undefined });
  const before = (seen ?? tenant.data?.tenant)?.effectivePolicy;
  const after = preview.data?.namespace?.effectivePolicy;
  const isLonger = msOf(after) >= msOf(before);
  // A longer retention is wanted for the stored records, too; a shorter one forgets some of them.
  const toExisting = chosen ?? (after !== undefined && isLonger);
  const make = useChange(request, { namespace, change, seen, report });
  return (
    <ConfirmDialog
      title={`Change the retention of ${namespace}`}
      action={
        change.kind === "set" ? `Change to ${formatDuration(change.retentionMs)}` : "Follow the tenant's"
      }
      {...(!isLonger && { typed: namespace, look: "danger" })}
      act={() => make(toExisting)}
      close={close}
    >
      {preview.data === undefined ? (
        preview.error === null ? (
          <Loading rows={5} />
        ) : (
          <ErrorState error={preview.error} retry={preview.refetch} />
        )
      ) : (
        <>
          <DataTable
            caption="Every replica follows within 10 s. New claims get these retentions:"
            rows={compareRetentions(before, after)}
            rowKey={({ name }) => name}
            columns={[
              { heading: "Retention", cell: ({ name }) => name },
              { heading: "Now", kind: "number", cell: (row) => row.before },
              { heading: "Afterwards", kind: "number", cell: (row) => row.after },
            ]}
          />
          <p>
            <label>
              <input
                type="checkbox"
                checked={toExisting}
                onChange={(event) => setChosen(event.target.checked)}
              />{" "}
              {describeEffect(preview.data.effect)}
            </label>
          </p>
        </>
      )}
    </ConfirmDialog>
  );
}

interface Circumstances extends Pick<ChangeDialogProps, "namespace" | "change" | "report"> {
  readonly seen: Namespace | undefined;
}

/** Returns the function that makes the change, and leads to its job. A conflict is reported and is not an error. */
function useChange(
  request: ReturnType<typeof requestFor>,
  { namespace, change, seen, report }: Circumstances,
) {
  const { getNamespace, listNamespaces, getRetentionAdvice } = TenantAdminService.method;
  const update = useMutation(TenantAdminService.method.updateNamespace);
  const refresh = useRefresh();
  const queryClient = useQueryClient();
  const transport = useTransport();
  const notify = useNotice();
  const [, setParameters] = useSearchParams();

  async function explainConflict(): Promise<void> {
    await refresh(getNamespace, listNamespaces, getRetentionAdvice);
    const current = await queryClient.fetchQuery(
      createQueryOptions(getRetentionAdvice, { namespace }, { transport }),
    );
    notify(`Nothing was changed: the policy of ${namespace} was changed in the meantime.`, "failure");
    report({
      was: formatPolicy(seen),
      is: current.keyRetention === undefined ? "not known" : formatDuration(durationMs(current.keyRetention)),
      proposed: change.kind === "set" ? formatDuration(change.retentionMs) : "the tenant's",
    });
  }

  return async function make(applyToExisting: boolean): Promise<void> {
    try {
      const { job } = await update.mutateAsync({ ...request, applyToExisting });
      report(undefined);
      setParameters(
        (before) => {
          const after = new URLSearchParams(before);
          after.delete("to");
          if (job === undefined) after.delete("job");
          else after.set("job", `${job.id}`);
          return after;
        },
        { replace: true },
      );
      notify(`The retention of ${namespace} is changed. Every replica follows within 10 s.`);
      await refresh(getNamespace, listNamespaces, getRetentionAdvice);
    } catch (error) {
      if (readFailure(error).reason !== "ETAG_MISMATCH") throw error;
      await explainConflict();
    }
  };
}

function formatPolicy(seen: Namespace | undefined): string {
  const retention = seen?.effectivePolicy?.keyRetention;
  return retention === undefined ? "the tenant's" : formatDuration(durationMs(retention));
}

function msOf(policy: Policy | undefined): number {
  return policy?.keyRetention === undefined ? 0 : durationMs(policy.keyRetention);
}

/** Returns what a change does to stored records, such as "Also for the 12 stored records (3 are forgotten at once)". */
function describeEffect(effect: RetentionEffect | undefined): string {
  const { recordsChanged = 0n, recordsForgotten = 0n, truncated = false } = effect ?? {};
  const atLeast = truncated ? "at least " : "";
  const records = formatNoun(recordsChanged, "stored record", "stored records");
  const forgotten =
    recordsForgotten === 0n
      ? "none is forgotten"
      : `${atLeast}${formatNoun(recordsForgotten, "is", "are")} forgotten at once`;
  return `Also for the ${atLeast}${records} (${forgotten})`;
}
