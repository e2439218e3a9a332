import { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import { type ApiKey, ApiKey_Role } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { useState } from "react";
import { Link, useLocation } from "wouter";
import { CreateKeyDialog } from "../../parts/api-key/create-key-dialog.tsx";
import { KeyTable } from "../../parts/api-key/key-table.tsx";
import { type NewSecret, SecretPanel } from "../../parts/api-key/secret-panel.tsx";
import type { Column } from "../../parts/data-table.tsx";
import { useFilters } from "../../parts/filter-bar.tsx";
import { List, usePage } from "../../parts/list.tsx";
import { Empty } from "../../parts/list-states.tsx";
import { hereWith } from "../../parts/pages.ts";
import { roleWords } from "../../session/session.ts";
import { Screen } from "../../shell/screen.tsx";
import common from "../../styles/common.module.css";
import { Rotation } from "./rotation-steps.tsx";
import { useCreateKey, useCreators, useRevokeKey } from "./use-key-calls.ts";

/**
 * The screen "API keys". A secret lives in this component's state alone: no cache and no address has it, and it is gone
 * when the screen is left.
 */
export default function ApiKeys() {
  const { rotate, successor } = useFilters(["rotate", "successor"]);
  const [, navigate] = useLocation();
  const createKey = useCreateKey();
  const [isCreating, setCreating] = useState(false);
  const [secret, setSecret] = useState<NewSecret>();
  return (
    <Screen
      title="API keys"
      lead="The credentials of the tenant's callers and administrators. A secret is shown once, when its key is created."
      actions={
        <button type="button" onClick={() => setCreating(true)}>
          Create a key
        </button>
      }
    >
      {secret !== undefined && <SecretPanel secret={secret} hide={() => setSecret(undefined)} />}
      {rotate === "" ? (
        <KeyList />
      ) : (
        // Another key is another rotation.
        <Rotation
          key={rotate}
          id={rotate}
          successorId={successor}
          created={(made) => {
            setSecret(made);
            navigate(hereWith(`?${new URLSearchParams({ rotate, successor: made.id })}`), { replace: true });
          }}
        />
      )}
      {isCreating && (
        <CreateKeyDialog
          title="Create a key"
          roles={[ApiKey_Role.CALLER, ApiKey_Role.TENANT_ADMIN]}
          isLimitable
          create={createKey}
          created={setSecret}
          close={() => setCreating(false)}
        />
      )}
    </Screen>
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
