import { type Client, createClient } from "@connectrpc/connect";
import { useTransport } from "@connectrpc/connect-query";
import { OperatorService, type ResumeTenantRequest } from "@onceward/gen/onceward/v1/operator_pb.ts";
import { type Tenant, Tenant_State } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { useState } from "react";
import { ConfirmDialog } from "../../parts/confirm-dialog.tsx";
import { useNotice } from "../../parts/notice.tsx";
import { useRefresh } from "../../parts/refresh.ts";
import common from "../../styles/common.module.css";

type Change = "suspend" | "resume" | "delete";

/** Suspends, resumes and deletes a tenant. */
export function StateChanges({ tenant }: { readonly tenant: Tenant }) {
  const [change, setChange] = useState<Change>();
  const isRefused = tenant.state === Tenant_State.SUSPENDED || tenant.state === Tenant_State.MOVING;
  return (
    <>
      <p className={common.row}>
        <button type="button" onClick={() => setChange(isRefused ? "resume" : "suspend")}>
          {isRefused ? "Resume the tenant" : "Suspend the tenant"}
        </button>
        <button type="button" data-look="danger" onClick={() => setChange("delete")}>
          Delete the tenant
        </button>
      </p>
      {change !== undefined && (
        <StateDialog tenant={tenant} change={change} close={() => setChange(undefined)} />
      )}
    </>
  );
}

/** What a request has; those that do not need all of it send a part. */
type ChangeRequest = Pick<ResumeTenantRequest, "name" | "reason" | "notImported"> & { readonly etag: string };

interface ChangeKind {
  readonly action: string;
  readonly effect: string;
  readonly done: string;
  readonly send: (client: Client<typeof OperatorService>, request: ChangeRequest) => Promise<unknown>;
}

const CHANGES: Readonly<Record<Change, ChangeKind>> = {
  suspend: {
    action: "Suspend",
    effect:
      "Within 10 s every call of the tenant is refused (TENANT_SUSPENDED), until it is resumed. Its records stay.",
    done: "Suspended",
    send: (client, { name, reason }) => client.suspendTenant({ name, reason }),
  },
  resume: {
    action: "Resume",
    effect: "Within 10 s the tenant's calls are answered again.",
    done: "Resumed",
    send: (client, { name, reason, notImported }) => client.resumeTenant({ name, reason, notImported }),
  },
  delete: {
    action: "Delete",
    effect:
      "The tenant's calls are refused permanently, and its records are removed in the background. This can't be undone: every key is forgotten, so a duplicate does its effect a second time.",
    done: "Deleted",
    send: (client, { name, reason, etag }) => client.deleteTenant({ name, reason, etag }),
  },
};

interface StateDialogProps {
  readonly tenant: Tenant;
  readonly change: Change;
  readonly close: () => void;
}

function StateDialog({ tenant: { name, etag, state }, change, close }: StateDialogProps) {
  const client = createClient(OperatorService, useTransport());
  const notImported = state === Tenant_State.MOVING;
  const refresh = useRefresh();
  const notify = useNotice();
  const { action, effect, done, send } = CHANGES[change];
  return (
    <ConfirmDialog
      title={`${action} the tenant ${name}?`}
      action={action}
      typed={name}
      reason="required"
      look={change === "resume" ? "plain" : "danger"}
      close={close}
      act={async (reason) => {
        await send(client, { name, etag, reason, notImported });
        notify(`${done} the tenant ${name}.`);
        await refresh(OperatorService);
      }}
    >
      <p>{effect}</p>
      {change === "resume" && notImported && (
        <p>
          The tenant is moving. Resume it only if no other installation has imported it: both would grant the
          same keys.
        </p>
      )}
    </ConfirmDialog>
  );
}
