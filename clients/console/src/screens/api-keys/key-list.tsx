import { useQuery } from "@connectrpc/connect-query";
import { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import type { ApiKey } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { useState } from "react";
import { Link } from "wouter";
import { KeyStateMark, LastUse } from "../../parts/api-key/key-facts.tsx";
import { keyState } from "../../parts/api-key/key-state.ts";
import { DataTable } from "../../parts/data-table.tsx";
import { Empty, ErrorState, Loading } from "../../parts/list-states.tsx";
import { Pager } from "../../parts/pager.tsx";
import { hereWith, usePageToken } from "../../parts/pages.ts";
import { Time, useNow } from "../../parts/time.tsx";
import { UserText } from "../../parts/user-text.tsx";
import { useSession } from "../../session/session.ts";
import styles from "./api-keys.module.css";
import { roleWords } from "./key-states.ts";
import { RevokeKey } from "./revoke-key.tsx";
import { useCreators } from "./use-key-calls.ts";

const PAGE_SIZE = 50;

/** The tenant's keys, newest first, revoked and expired ones too. */
export function KeyList() {
  const { token } = usePageToken();
  const { data, error, refetch } = useQuery(TenantAdminService.method.listApiKeys, {
    pageSize: PAGE_SIZE,
    pageToken: token,
  });
  const creatorOf = useCreators(data?.apiKeys ?? []);
  const [revoking, setRevoking] = useState<ApiKey>();
  const { actor } = useSession();
  const now = useNow();
  if (data === undefined) {
    return error === null ? <Loading rows={6} /> : <ErrorState error={error} retry={refetch} />;
  }
  if (data.apiKeys.length === 0) {
    return (
      <Empty command="onceward keys create --role caller --label payments">
        The tenant has no key. Its callers sign in with tokens, or not at all.
      </Empty>
    );
  }
  return (
    <>
      <DataTable
        caption="Newest first. The last use is known to the hour."
        columns={[
          {
            heading: "Key",
            cell: ({ id, label }) => (
              <>
                <code>{id}</code>
                {id === actor && <span className={styles.quiet}> (yours)</span>}
                {label !== "" && (
                  <div>
                    <UserText>{label}</UserText>
                  </div>
                )}
              </>
            ),
          },
          { heading: "State", cell: (key) => <KeyStateMark apiKey={key} now={now} /> },
          {
            heading: "Role",
            cell: ({ role, namespaces }) => (
              <>
                {roleWords(role)}
                <div className={styles.quiet}>in {namespaces.join(", ") || "all namespaces"}</div>
              </>
            ),
          },
          { heading: "Last used", cell: ({ lastUsedAt }) => <LastUse at={lastUsedAt} /> },
          { heading: "Expires", cell: ({ expiresAt }) => (expiresAt ? <Time at={expiresAt} /> : "never") },
          { heading: "Created", cell: (key) => <Creation apiKey={key} by={creatorOf(key.id)} /> },
          {
            heading: "",
            cell: (key) =>
              keyState(key, now) !== "revoked" && <KeyActs id={key.id} revoke={() => setRevoking(key)} />,
          },
        ]}
        rows={data.apiKeys}
        rowKey={({ id }) => id}
      />
      <Pager nextPageToken={data.nextPageToken} />
      {revoking !== undefined && <RevokeKey apiKey={revoking} close={() => setRevoking(undefined)} />}
    </>
  );
}

function Creation({
  apiKey: { createdAt },
  by,
}: {
  readonly apiKey: ApiKey;
  readonly by: string | undefined;
}) {
  return (
    <>
      <Time at={createdAt} form="absolute" />
      {by !== undefined && (
        <div className={styles.quiet}>
          by <UserText>{by}</UserText>
        </div>
      )}
    </>
  );
}

function KeyActs({ id, revoke }: { readonly id: string; readonly revoke: () => void }) {
  return (
    <span className={styles.acts}>
      <Link href={hereWith(`?${new URLSearchParams({ rotate: id })}`)} aria-label={`Rotate ${id}`}>
        Rotate
      </Link>
      <button type="button" data-look="link" aria-label={`Revoke ${id}`} onClick={revoke}>
        Revoke
      </button>
    </span>
  );
}
