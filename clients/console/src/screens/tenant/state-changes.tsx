import { type Client, createClient } from "@connectrpc/connect";
import { useTransport } from "@connectrpc/connect-query";
import { OperatorService, type ResumeTenantRequest } from "@onceward/gen/onceward/v1/operator_pb.ts";
import { type Tenant, Tenant_State } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { RESUME_MOVING, TENANT_CHANGES } from "@onceward/words/changes";
import { ConfirmDialog, DialogButton } from "../../parts/confirm-dialog.tsx";
import { useNotice } from "../../parts/notice.tsx";
import { useRefresh } from "../../parts/refresh.ts";

type Change = keyof typeof TENANT_CHANGES;

/** Suspends or resumes a tenant. */
export function SuspendOrResume({ tenant }: { readonly tenant: Tenant }) {
  const isRefused = tenant.state === Tenant_State.SUSPENDED || tenant.state === Tenant_State.MOVING;
  const change = isRefused ? "resume" : "suspend";
  return (
    <DialogButton
      key={change}
      action={`${TENANT_CHANGES[change].action} the tenant`}
      dialog={(close) => <StateDialog tenant={tenant} change={change} close={close} />}
    />
  );
}

/** What a request has; those that do not need all of it send a part. */
type ChangeRequest = Pick<ResumeTenantRequest, "name" | "reason" | "notImported"> & { readonly etag: string };

type Send = (client: Client<typeof OperatorService>, request: ChangeRequest) => Promise<unknown>;

const SENDS: Readonly<Record<Change, Send>> = {
  suspend: (client, { name, reason }) => client.suspendTenant({ name, reason }),
  resume: (client, { name, reason, notImported }) => client.resumeTenant({ name, reason, notImported }),
  delete: (client, { name, reason, etag }) => client.deleteTenant({ name, reason, etag }),
};

interface StateDialogProps {
  readonly tenant: Tenant;
  readonly change: Change;
  readonly close: () => void;
}

/** Asks before a tenant is suspended, resumed or deleted. */
export function StateDialog({ tenant: { name, etag, state }, change, close }: StateDialogProps) {
  const client = createClient(OperatorService, useTransport());
  const notImported = state === Tenant_State.MOVING;
  const refresh = useRefresh();
  const notify = useNotice();
  const { action, effect, done } = TENANT_CHANGES[change];
  return (
    <ConfirmDialog
      title={`${action} the tenant ${name}?`}
      action={action}
      typed={name}
      reason="required"
      look={change === "resume" ? "plain" : "danger"}
      close={close}
      act={async (reason) => {
        await SENDS[change](client, { name, etag, reason, notImported });
        notify(`${done} the tenant ${name}.`);
        await refresh(OperatorService);
      }}
    >
      <p>{effect}</p>
      {change === "resume" && notImported && <p>{RESUME_MOVING}</p>}
    </ConfirmDialog>
  );
}
