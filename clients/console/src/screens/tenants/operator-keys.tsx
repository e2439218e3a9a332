import { useMutation, useQuery } from "@connectrpc/connect-query";
import { OperatorService } from "@onceward/gen/onceward/v1/operator_pb.ts";
import type { ApiKey } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { useState } from "react";
import { KeyStateMark, LastUse } from "../../parts/api-key/key-facts.tsx";
import { keyState } from "../../parts/api-key/key-state.ts";
import { CliHint } from "../../parts/cli-hint.tsx";
import { ConfirmDialog } from "../../parts/confirm-dialog.tsx";
import { DataTable } from "../../parts/data-table.tsx";
import { Empty, ErrorState, Loading } from "../../parts/list-states.tsx";
import { useNotice } from "../../parts/notice.tsx";
import { Pager } from "../../parts/pager.tsx";
import { usePageToken } from "../../parts/pages.ts";
import { useRefresh } from "../../parts/refresh.ts";
import { Time, useNow } from "../../parts/time.tsx";
import { UserText } from "../../parts/user-text.tsx";
import { useSession } from "../../session/session.ts";
import styles from "./tenants.module.css";

const PAGE_SIZE = 50;

/** The operators' keys, newest first, revoked and expired ones too. */
export function OperatorKeys() {
  const { token } = usePageToken();
  const { data, error, refetch } = useQuery(OperatorService.method.listOperatorApiKeys, {
    pageSize: PAGE_SIZE,
    pageToken: token,
  });
  const [revoking, setRevoking] = useState<ApiKey>();
  const { actor } = useSession();
  const now = useNow();
  if (data === undefined) {
    return error === null ? <Loading rows={6} /> : <ErrorState error={error} retry={refetch} />;
  }
  if (data.apiKeys.length === 0) {
    return (
      <Empty command="onceward operator keys create --label 'on call' --expires 90d">
        There is no operator's key but that of the server's configuration (ONCEWARD_OPERATOR_KEY).
      </Empty>
    );
  }
  return (
    <>
      <DataTable
        caption="Newest first, without the key of the server's configuration (ONCEWARD_OPERATOR_KEY). The last use is known to the hour."
        columns={[
          {
            heading: "Key",
            cell: ({ id, label }) => (
              <>
                <code>{id}</code>
                {id === actor && <span className={styles.quiet}> (yours)</span>}
                <div>
                  <UserText>{label}</UserText>
                </div>
              </>
            ),
          },
          { heading: "State", cell: (key) => <KeyStateMark apiKey={key} now={now} /> },
          { heading: "Last used", cell: ({ lastUsedAt }) => <LastUse at={lastUsedAt} /> },
          { heading: "Expires", cell: ({ expiresAt }) => (expiresAt ? <Time at={expiresAt} /> : "never") },
          { heading: "Created", cell: ({ createdAt }) => <Time at={createdAt} /> },
          {
            heading: "Change",
            cell: (key) =>
              keyState(key, now) !== "revoked" && (
                <button
                  type="button"
                  data-look="link"
                  aria-label={`Revoke ${key.id}`}
                  onClick={() => setRevoking(key)}
                >
                  Revoke
                </button>
              ),
          },
        ]}
        rows={data.apiKeys}
        rowKey={({ id }) => id}
      />
      <Pager nextPageToken={data.nextPageToken} />
      <CliHint command="onceward operator keys list" />
      {revoking !== undefined && <RevokeOperatorKey apiKey={revoking} close={() => setRevoking(undefined)} />}
    </>
  );
}

function RevokeOperatorKey({ apiKey, close }: { readonly apiKey: ApiKey; readonly close: () => void }) {
  const { id, label } = apiKey;
  const revoke = useMutation(OperatorService.method.revokeOperatorApiKey);
  const refresh = useRefresh();
  const notify = useNotice();
  const { actor } = useSession();
  return (
    <ConfirmDialog
      title={`Revoke the operator's key ${id}?`}
      action="Revoke"
      typed={id}
      look="danger"
      close={close}
      act={async () => {
        await revoke.mutateAsync({ id });
        notify(`Revoked key ${id}. Every replica refuses it within 10 s.`);
        await refresh(OperatorService.method.listOperatorApiKeys, OperatorService.method.listAuditEvents);
      }}
    >
      {label !== "" && (
        <p>
          Purpose: <UserText>{label}</UserText>
        </p>
      )}
      <p>Calls with it are refused from then on. It can't be undone.</p>
      {id === actor && <p>You are signed in with this key: your session ends with it.</p>}
    </ConfirmDialog>
  );
}
