import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { createClient } from "@connectrpc/connect";
import { useTransport } from "@connectrpc/connect-query";
import { OperatorService } from "@onceward/gen/onceward/v1/operator_pb.ts";
import { ApiKey_Role } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { useState } from "react";
import { type Expiry, expiryDate } from "../../parts/api-key/expiry.ts";
import { ExpiryField } from "../../parts/api-key/expiry-field.tsx";
import type { NewSecret } from "../../parts/api-key/secret-panel.tsx";
import { ConfirmDialog } from "../../parts/confirm-dialog.tsx";
import { SelectField, TextField } from "../../parts/field.tsx";

interface CreateTenantKeyProps {
  readonly tenant: string;
  readonly created: (secret: NewSecret) => void;
  readonly close: () => void;
}

/** The form of a key of a tenant. Its secret goes to `created` and to no cache. */
export function CreateTenantKey({ tenant, created, close }: CreateTenantKeyProps) {
  const createKey = useCreateTenantKey();
  const [role, setRole] = useState<ApiKey_Role>(ApiKey_Role.TENANT_ADMIN);
  const [label, setLabel] = useState("");
  const [expiry, setExpiry] = useState<Expiry>("90");
  return (
    <ConfirmDialog
      title={`Create a key of ${tenant}`}
      action="Create the key"
      close={close}
      act={async () => created(await createKey(tenant, { role, label: label.trim(), expiry }))}
    >
      <SelectField
        label="Role"
        value={role}
        onChange={(event) => setRole(Number(event.target.value) as ApiKey_Role)}
      >
        <option value={ApiKey_Role.TENANT_ADMIN}>Tenant admin</option>
        <option value={ApiKey_Role.CALLER}>Caller</option>
      </SelectField>
      <TextField
        label="Purpose"
        help="At most 128 bytes."
        value={label}
        onChange={(event) => setLabel(event.target.value)}
      />
      <ExpiryField value={expiry} change={setExpiry} />
    </ConfirmDialog>
  );
}

/** What a new key of a tenant may do. */
export interface TenantKeyTerms {
  readonly role: ApiKey_Role;
  readonly label: string;
  readonly expiry: Expiry;
}

/** Returns the function that creates a tenant's key. It calls the API directly: a mutation's answer would stay in the cache. */
export function useCreateTenantKey(): (tenant: string, terms: TenantKeyTerms) => Promise<NewSecret> {
  const client = createClient(OperatorService, useTransport());
  return async (tenant, { role, label, expiry }) => {
    const expiresAt = expiryDate(expiry, new Date());
    const apiKey = { role, label, ...(expiresAt && { expiresAt: timestampFromDate(expiresAt) }) };
    const answer = await client.createTenantApiKey({ tenant, apiKey });
    return { id: answer.apiKey?.id ?? "", label, secret: answer.secret };
  };
}
