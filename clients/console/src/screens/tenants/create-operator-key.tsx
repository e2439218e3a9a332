import { createClient } from "@connectrpc/connect";
import { useTransport } from "@connectrpc/connect-query";
import { OperatorService } from "@onceward/gen/onceward/v1/operator_pb.ts";
import { ApiKey_Role } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { CreateKeyDialog, type KeyTerms } from "../../parts/api-key/create-key-dialog.tsx";
import type { NewSecret } from "../../parts/api-key/secret-panel.tsx";
import { useRefresh } from "../../parts/refresh.ts";

interface CreateOperatorKeyProps {
  readonly created: (secret: NewSecret) => void;
  readonly close: () => void;
}

/** The form of an operator's key. It calls the API directly: a mutation's answer would stay in the cache. */
export function CreateOperatorKey(props: CreateOperatorKeyProps) {
  const client = createClient(OperatorService, useTransport());
  const refresh = useRefresh();

  async function create({ role: _operator, ...apiKey }: KeyTerms): Promise<NewSecret> {
    const answer = await client.createOperatorApiKey({ apiKey });
    // Not awaited: the secret is shown even if the list can't be read.
    void refresh(OperatorService.method.listOperatorApiKeys, OperatorService.method.listAuditEvents);
    return { id: answer.apiKey?.id ?? "", label: apiKey.label, secret: answer.secret };
  }

  return (
    <CreateKeyDialog
      title="Create an operator's key"
      lead="It may do everything that this console may: for all tenants, but without their records. To rotate a key, create its successor, switch to it, and revoke the old one."
      roles={[ApiKey_Role.OPERATOR]}
      create={create}
      {...props}
    />
  );
}
