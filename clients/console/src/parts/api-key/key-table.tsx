import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { ApiKey } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { REVOKE_KEY } from "@onceward/words/changes";
import { type ReactNode, useState } from "react";
import { describeHour } from "../../format/time.ts";
import { roleWords, useSession } from "../../session/session.ts";
import common from "../../styles/common.module.css";
import styles from "../../styles/parts.module.css";
import { ConfirmDialog } from "../confirm-dialog.tsx";
import { type Column, DataTable } from "../data-table.tsx";
import { Facts } from "../facts.tsx";
import { useNotice } from "../notice.tsx";
import { StateMark } from "../state-mark.tsx";
import { Time, useNow } from "../time.tsx";
import { UserText } from "../user-text.tsx";
import { KEY_STATE_MARKS, keyState } from "./key-state.ts";

interface KeyTableProps {
  readonly caption: string;
  readonly keys: readonly ApiKey[];
  /** Between the state and the last use. */
  readonly columns?: readonly Column<ApiKey>[];
  /** Who created a key; undefined: not known. */
  readonly creatorOf?: (id: string) => string | undefined;
  /** A link before the button that revokes. */
  readonly act?: (key: ApiKey) => ReactNode;
  readonly revoke: (id: string) => Promise<unknown>;
}

/** API keys, and the dialog that revokes one. */
export function KeyTable({ caption, keys, columns = [], creatorOf, act, revoke }: KeyTableProps) {
  const [revoking, setRevoking] = useState<ApiKey>();
  const { actor } = useSession();
  const now = useNow();
  return (
    <>
      <DataTable
        caption={caption}
        columns={[
          [
            "Key",
            ({ id, label }) => (
              <>
                {label !== "" && <UserText>{label}</UserText>}
                <div className={common.quiet}>
                  <code>{id}</code>
                  {id === actor && " (yours)"}
                </div>
              </>
            ),
          ],
          ["State", (key) => <StateMark {...KEY_STATE_MARKS[keyState(key, now)]} />],
          ...columns,
          ["Last used", ({ lastUsedAt }) => <LastUse at={lastUsedAt} />],
          ["Expires", ({ expiresAt }) => (expiresAt ? <Time at={expiresAt} /> : "never")],
          [
            "Created",
            ({ id, createdAt }) => (
              <>
                <Time at={createdAt} form="absolute" />
                {creatorOf?.(id) !== undefined && (
                  <div className={common.quiet}>
                    by <UserText>{creatorOf(id) ?? ""}</UserText>
                  </div>
                )}
              </>
            ),
          ],
          [
            "",
            (key) =>
              keyState(key, now) !== "revoked" && (
                <span className={styles.acts}>
                  {act?.(key)}
                  <button
                    type="button"
                    data-look="rare"
                    aria-label={`Revoke ${key.id}`}
                    onClick={() => setRevoking(key)}
                  >
                    Revoke
                  </button>
                </span>
              ),
          ],
        ]}
        rows={keys}
        rowKey={({ id }) => id}
      />
      {revoking !== undefined && (
        <RevokeKeyDialog apiKey={revoking} revoke={revoke} close={() => setRevoking(undefined)} />
      )}
    </>
  );
}

interface RevokeKeyDialogProps {
  readonly apiKey: ApiKey;
  readonly revoke: (id: string) => Promise<unknown>;
  readonly close: () => void;
}

/** Asks before a key is revoked: its id has to be typed. */
export function RevokeKeyDialog({ apiKey, revoke, close }: RevokeKeyDialogProps) {
  const { id, label, role, lastUsedAt } = apiKey;
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
        await revoke(id);
        notify(`Revoked key ${id}. Every replica refuses it within 10 s.`);
      }}
    >
      <Facts
        of={{
          Purpose: label === "" ? "-" : <UserText>{label}</UserText>,
          Role: roleWords(role),
          "Last used": <LastUse at={lastUsedAt} />,
        }}
      />
      <p>{REVOKE_KEY}</p>
      {id === actor && <p>You are signed in with this key: your session ends with it.</p>}
    </ConfirmDialog>
  );
}

/** When a key was last used. It is known to the hour, so that hour is named and no moment in it. */
export function LastUse({ at }: { readonly at: ApiKey["lastUsedAt"] }) {
  const now = useNow();
  if (at === undefined) return <span className={common.quiet}>not yet</span>;
  const hour = timestampDate(at);
  return <time dateTime={hour.toISOString()}>{describeHour(hour, now)}</time>;
}
