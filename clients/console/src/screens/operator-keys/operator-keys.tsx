import { createClient } from "@connectrpc/connect";
import { useMutation, useTransport } from "@connectrpc/connect-query";
import { OperatorService } from "@onceward/gen/onceward/v1/operator_pb.ts";
import { ApiKey_Role } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { CreateKeyDialog, type KeyTerms } from "../../parts/api-key/create-key-dialog.tsx";
import { KeyTable } from "../../parts/api-key/key-table.tsx";
import type { CreateProps, NewSecret } from "../../parts/api-key/secret-panel.tsx";
import { SecretScreen } from "../../parts/api-key/secret-screen.tsx";
import { List, usePage } from "../../parts/list.tsx";
import { Empty } from "../../parts/list-states.tsx";
import { useRefresh } from "../../parts/refresh.ts";

/** The screen "Operator keys". */
export default function OperatorKeys() {
  return (
    <SecretScreen
      title="Operator keys"
      lead="The credentials of those who run the service. A secret is shown once, when its key is created."
      action="Create a key"
      form={CreateOperatorKey}
    >
      {() => <KeyList />}
    </SecretScreen>
  );
}

/** The operators' keys, newest first, revoked and expired ones too. */
function KeyList() {
  const { listOperatorApiKeys, revokeOperatorApiKey } = OperatorService.method;
  const page = usePage(listOperatorApiKeys, {});
  const revoke = useMutation(revokeOperatorApiKey);
  const refresh = useRefresh();
  return (
    <List
      page={page}
      rows={6}
      isEmpty={({ apiKeys }) => apiKeys.length === 0}
      empty={
        <Empty command="onceward operator keys create --label 'on call' --expires 90d">
          There is no operator's key but that of the server's configuration (ONCEWARD_OPERATOR_KEY).
        </Empty>
      }
      command="onceward operator keys list"
    >
      {({ apiKeys }) => (
        <KeyTable
          caption="Newest first, without the key of the server's configuration (ONCEWARD_OPERATOR_KEY). The last use is known to the hour."
          keys={apiKeys}
          revoke={async (id) => {
            await revoke.mutateAsync({ id });
            await refresh(OperatorService);
          }}
        />
      )}
    </List>
  );
}

/** The form of an operator's key. It calls the API directly: a mutation's answer would stay in the cache. */
function CreateOperatorKey(props: CreateProps) {
  const client = createClient(OperatorService, useTransport());
  const refresh = useRefresh();

  async function create({ role: _operator, ...apiKey }: KeyTerms): Promise<NewSecret> {
    const answer = await client.createOperatorApiKey({ apiKey });
    // Not awaited: the secret is shown even if the list can't be read.
    void refresh(OperatorService);
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
