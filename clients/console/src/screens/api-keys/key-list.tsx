import { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import type { ApiKey } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { Link } from "wouter";
import { roleWords } from "../../parts/api-key/key-state.ts";
import { KeyTable } from "../../parts/api-key/key-table.tsx";
import type { Column } from "../../parts/data-table.tsx";
import { List, usePage } from "../../parts/list.tsx";
import { Empty } from "../../parts/list-states.tsx";
import { hereWith } from "../../parts/pages.ts";
import common from "../../styles/common.module.css";
import { useCreators, useRevokeKey } from "./use-key-calls.ts";

const PAGE_SIZE = 50;

/** The tenant's keys, newest first, revoked and expired ones too. */
export function KeyList() {
  const page = usePage(TenantAdminService.method.listApiKeys, { pageSize: PAGE_SIZE });
  const creatorOf = useCreators(page.data?.apiKeys ?? []);
  const revoke = useRevokeKey();
  return (
    <List
      page={page}
      rows={6}
      isEmpty={({ apiKeys }) => apiKeys.length === 0}
      empty={
        <Empty command="onceward keys create --role caller --label payments">
          The tenant has no key. Its callers sign in with tokens, or not at all.
        </Empty>
      }
      command="onceward keys list"
    >
      {({ apiKeys }) => (
        <KeyTable
          caption="Newest first. The last use is known to the hour."
          keys={apiKeys}
          columns={[ROLE_COLUMN]}
          creatorOf={creatorOf}
          act={({ id }) => (
            <Link href={hereWith(`?${new URLSearchParams({ rotate: id })}`)} aria-label={`Rotate ${id}`}>
              Rotate
            </Link>
          )}
          revoke={revoke}
        />
      )}
    </List>
  );
}

const ROLE_COLUMN: Column<ApiKey> = [
  "Role",
  ({ role, namespaces }) => (
    <>
      {roleWords(role)}
      <div className={common.quiet}>in {namespaces.join(", ") || "all namespaces"}</div>
    </>
  ),
];
