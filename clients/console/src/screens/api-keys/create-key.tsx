import { ApiKey_Role } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { CreateKeyDialog } from "../../parts/api-key/create-key-dialog.tsx";
import type { NewSecret } from "../../parts/api-key/secret-panel.tsx";
import { useCreateKey } from "./use-key-calls.ts";

interface CreateKeyProps {
  readonly created: (secret: NewSecret) => void;
  readonly close: () => void;
}

/** The form of a new key of the tenant. */
export function CreateKey(props: CreateKeyProps) {
  const roles = [ApiKey_Role.CALLER, ApiKey_Role.TENANT_ADMIN];
  return (
    <CreateKeyDialog title="Create a key" roles={roles} isLimitable create={useCreateKey()} {...props} />
  );
}
