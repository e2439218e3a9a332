import { useMutation } from "@connectrpc/connect-query";
import { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import type { ApiKey } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { LastUse } from "../../parts/api-key/key-facts.tsx";
import { ConfirmDialog } from "../../parts/confirm-dialog.tsx";
import { useNotice } from "../../parts/notice.tsx";
import { UserText } from "../../parts/user-text.tsx";
import { useSession } from "../../session/session.ts";
import { roleWords } from "./key-states.ts";
import { useForgetKeys } from "./use-key-calls.ts";

/** Asks before a key is revoked: its id has to be typed. */
export function RevokeKey({ apiKey, close }: { readonly apiKey: ApiKey; readonly close: () => void }) {
  const { id, label, role, lastUsedAt } = apiKey;
  const revoke = useMutation(TenantAdminService.method.revokeApiKey);
  const forget = useForgetKeys();
  const notify = useNotice();
  const { actor } = useSession();
  return (
    <ConfirmDialog
      title={`Revoke key ${id}?`}
      action="Revoke"
      typed={id}
      look="danger"
      close={close}
      act={async () => {
        await revoke.mutateAsync({ id });
        notify(`Revoked key ${id}. Every replica refuses it within 10 s.`);
        await forget();
      }}
    >
      <dl>
        <dt>Purpose</dt>
        <dd>{label === "" ? "-" : <UserText>{label}</UserText>}</dd>
        <dt>Role</dt>
        <dd>{roleWords(role)}</dd>
        <dt>Last used</dt>
        <dd>
          <LastUse at={lastUsedAt} />
        </dd>
      </dl>
      <p>Calls with it are refused from then on. It can't be undone.</p>
      {id === actor && <p>You are signed in with this key: your session ends with it.</p>}
    </ConfirmDialog>
  );
}
