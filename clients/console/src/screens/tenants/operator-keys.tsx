import { useMutation, useQuery } from "@connectrpc/connect-query";
import { OperatorService } from "@onceward/gen/onceward/v1/operator_pb.ts";
import { KeyTable } from "../../parts/api-key/key-table.tsx";
import { CliHint } from "../../parts/cli-hint.tsx";
import { Empty, Unanswered } from "../../parts/list-states.tsx";
import { Pager } from "../../parts/pager.tsx";
import { usePageToken } from "../../parts/pages.ts";
import { useRefresh } from "../../parts/refresh.ts";

const PAGE_SIZE = 50;

/** The operators' keys, newest first, revoked and expired ones too. */
export function OperatorKeys() {
  const { token } = usePageToken();
  const { listOperatorApiKeys, listAuditEvents, revokeOperatorApiKey } = OperatorService.method;
  const list = useQuery(listOperatorApiKeys, { pageSize: PAGE_SIZE, pageToken: token });
  const { data } = list;
  const revoke = useMutation(revokeOperatorApiKey);
  const refresh = useRefresh();
  if (data === undefined) return <Unanswered query={list} rows={6} />;
  if (data.apiKeys.length === 0) {
    return (
      <Empty command="onceward operator keys create --label 'on call' --expires 90d">
        There is no operator's key but that of the server's configuration (ONCEWARD_OPERATOR_KEY).
      </Empty>
    );
  }
  return (
    <>
      <KeyTable
        caption="Newest first, without the key of the server's configuration (ONCEWARD_OPERATOR_KEY). The last use is known to the hour."
        keys={data.apiKeys}
        revoke={async (id) => {
          await revoke.mutateAsync({ id });
          await refresh(listOperatorApiKeys, listAuditEvents);
        }}
      />
      <Pager nextPageToken={data.nextPageToken} />
      <CliHint command="onceward operator keys list" />
    </>
  );
}
