import { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import { type ApiKey, ApiKey_Role } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { Link, useLocation } from "wouter";
import { CreateKeyDialog } from "../../parts/api-key/create-key-dialog.tsx";
import { KeyTable } from "../../parts/api-key/key-table.tsx";
import type { CreateProps } from "../../parts/api-key/secret-panel.tsx";
import { SecretScreen } from "../../parts/api-key/secret-screen.tsx";
import type { Column } from "../../parts/data-table.tsx";
import { useFilters } from "../../parts/filter-bar.tsx";
import { List, usePage } from "../../parts/list.tsx";
import { Empty } from "../../parts/list-states.tsx";
import { hereWith } from "../../parts/pages.ts";
import { roleWords } from "../../session/session.ts";
import common from "../../styles/common.module.css";
import { Rotation } from "./rotation-steps.tsx";
import { useCreateKey, useCreators, useRevokeKey } from "./use-key-calls.ts";

/** The screen "API keys". */
export default function ApiKeys() {
  const { rotate, successor } = useFilters(["rotate", "successor"]);
  const [, navigate] = useLocation();
  return (
    <SecretScreen
      title="API keys"
      lead="The credentials of the tenant's callers and administrators. A secret is shown once, when its key is created."
      action="Create a key"
      form={CreateKey}
    >
      {(show) =>
        rotate === "" ? (
          <KeyList />
        ) : (
          // Another key is another rotation.
          <Rotation
            key={rotate}
            id={rotate}
            successorId={successor}
            created={(made) => {
              show(made);
              navigate(hereWith(`?${new URLSearchParams({ rotate, successor: made.id })}`), {
                replace: true,
              });
            }}
          />
        )
      }
    </SecretScreen>
  );
}

function CreateKey(props: CreateProps) {
  const roles = [ApiKey_Role.CALLER, ApiKey_Role.TENANT_ADMIN];
  return (
    <CreateKeyDialog title="Create a key" roles={roles} isLimitable create={useCreateKey()} {...props} />
  );
}

/** The tenant's keys, newest first, revoked and expired ones too. */
function KeyList() {
  const page = usePage(TenantAdminService.method.listApiKeys, {});
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
