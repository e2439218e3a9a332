import { useMutation } from "@connectrpc/connect-query";
import { OperatorService } from "@onceward/gen/onceward/v1/operator_pb.ts";
import { ApiKey_Role } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { useState } from "react";
import { type Expiry, ExpiryField, expiryField } from "../../parts/api-key/create-key-dialog.tsx";
import type { CreateProps } from "../../parts/api-key/secret-panel.tsx";
import { ConfirmDialog } from "../../parts/confirm-dialog.tsx";
import { TextField } from "../../parts/field.tsx";
import { useNotice } from "../../parts/notice.tsx";
import { useRefresh } from "../../parts/refresh.ts";
import common from "../../styles/common.module.css";
import { useCreateTenantKey } from "../tenant/use-tenant-usage.ts";

/** The form of a tenant and its administrator's first key. If only the key fails, the form asks for the key again. */
export function CreateTenant({ created, close }: CreateProps) {
  const create = useMutation(OperatorService.method.createTenant);
  const createKey = useCreateTenantKey();
  const refresh = useRefresh();
  const notify = useNotice();
  const [name, setName] = useState("");
  const [label, setLabel] = useState("First administrator");
  const [expiry, setExpiry] = useState<Expiry>("90");
  const [isMade, setMade] = useState(false);

  async function act(): Promise<void> {
    if (!isMade) {
      await create.mutateAsync({ tenant: { name: name.trim() } });
      setMade(true);
      await refresh(OperatorService);
    }
    const terms = { role: ApiKey_Role.TENANT_ADMIN, label: label.trim(), namespaces: [] };
    created(await createKey(name.trim(), { ...terms, ...expiryField(expiry) }));
    notify(`Created the tenant ${name.trim()} and its first key.`);
  }

  return (
    <ConfirmDialog
      title="Create a tenant"
      action={isMade ? "Create its key" : "Create the tenant and its key"}
      isValid={name.trim() !== ""}
      act={act}
      close={close}
    >
      <div className={common.stack}>
        <TextField
          label="Name"
          help="Small letters, digits, dots, hyphens and underscores: at most 63. It can't be changed."
          value={name}
          maxLength={63}
          readOnly={isMade}
          onChange={(event) => setName(event.target.value)}
        />
        <TextField
          label="Purpose of the first key"
          help="A key of a tenant admin, which creates the others. At most 128 bytes."
          value={label}
          onChange={(event) => setLabel(event.target.value)}
        />
        <ExpiryField value={expiry} change={setExpiry} />
        {isMade && <p>The tenant exists; its key does not.</p>}
      </div>
    </ConfirmDialog>
  );
}
