import { useQuery } from "@connectrpc/connect-query";
import { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import { Link } from "wouter";
import { roleWords } from "../../parts/api-key/key-state.ts";
import { KeyTable } from "../../parts/api-key/key-table.tsx";
import { Empty, Unanswered } from "../../parts/list-states.tsx";
import { Pager } from "../../parts/pager.tsx";
import { hereWith, usePageToken } from "../../parts/pages.ts";
import common from "../../styles/common.module.css";
import { useCreators, useRevokeKey } from "./use-key-calls.ts";

const PAGE_SIZE = 50;

/** The tenant's keys, newest first, revoked and expired ones too. */
export function KeyList() {
  const { token } = usePageToken();
  const list = useQuery(TenantAdminService.method.listApiKeys, {
    pageSize: PAGE_SIZE,
    pageToken: token,
  });
  const { data } = list;
  const creatorOf = useCreators(data?.apiKeys ?? []);
  const revoke = useRevokeKey();
  if (data === undefined) return <Unanswered query={list} rows={6} />;
  if (data.apiKeys.length === 0) {
    return (
      <Empty command="onceward keys create --role caller --label payments">
        The tenant has no key. Its callers sign in with tokens, or not at all.
      </Empty>
    );
  }
  return (
    <>
      <KeyTable
        caption="Newest first. The last use is known to the hour."
        keys={data.apiKeys}
        columns={[
          {
            heading: "Role",
            cell: ({ role, namespaces }) => (
              <>
                {roleWords(role)}
                <div className={common.quiet}>in {namespaces.join(", ") || "all namespaces"}</div>
              </>
            ),
          },
        ]}
        creatorOf={creatorOf}
        act={({ id }) => (
          <Link href={hereWith(`?${new URLSearchParams({ rotate: id })}`)} aria-label={`Rotate ${id}`}>
            Rotate
          </Link>
        )}
        revoke={revoke}
      />
      <Pager nextPageToken={data.nextPageToken} />
    </>
  );
}
