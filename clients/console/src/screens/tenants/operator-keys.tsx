import { useMutation } from "@connectrpc/connect-query";
import { OperatorService } from "@onceward/gen/onceward/v1/operator_pb.ts";
import { KeyTable } from "../../parts/api-key/key-table.tsx";
import { List, usePage } from "../../parts/list.tsx";
import { Empty } from "../../parts/list-states.tsx";
import { useRefresh } from "../../parts/refresh.ts";

const PAGE_SIZE = 50;

/** The operators' keys, newest first, revoked and expired ones too. */
export function OperatorKeys() {
  const { listOperatorApiKeys, listAuditEvents, revokeOperatorApiKey } = OperatorService.method;
  const page = usePage(listOperatorApiKeys, { pageSize: PAGE_SIZE });
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
            await refresh(listOperatorApiKeys, listAuditEvents);
          }}
        />
      )}
    </List>
  );
}
