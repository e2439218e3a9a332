import { ApiKey_Role } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { useState } from "react";
import { useLocation } from "wouter";
import { CreateKeyDialog } from "../../parts/api-key/create-key-dialog.tsx";
import { type NewSecret, SecretPanel } from "../../parts/api-key/secret-panel.tsx";
import { useFilters } from "../../parts/filter-bar.tsx";
import { hereWith } from "../../parts/pages.ts";
import { Screen } from "../../shell/screen.tsx";
import { KeyList } from "./key-list.tsx";
import { Rotation } from "./rotation.tsx";
import { useCreateKey } from "./use-key-calls.ts";

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
