import { useQuery } from "@connectrpc/connect-query";
import { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import type { ApiKey } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { type ReactNode, useState } from "react";
import { Link } from "wouter";
import { formatDuration } from "../../format/duration.ts";
import { type Expiry, ExpiryField, expiryField } from "../../parts/api-key/create-key-dialog.tsx";
import { LastUse, RevokeKeyDialog } from "../../parts/api-key/key-table.tsx";
import type { NewSecret } from "../../parts/api-key/secret-panel.tsx";
import { DialogButton, useAction } from "../../parts/confirm-dialog.tsx";
import { ActionError, Empty, Unanswered } from "../../parts/list-states.tsx";
import { hereWith } from "../../parts/pages.ts";
import { type Mark, StateMark } from "../../parts/state-mark.tsx";
import { Time, useNow } from "../../parts/time.tsx";
import { UserText } from "../../parts/user-text.tsx";
import { roleWords } from "../../session/session.ts";
import { useLiveInterval } from "../../shell/live.ts";
import common from "../../styles/common.module.css";
import styles from "../../styles/screens.module.css";
import { findSuccessors, type RotationStep, rotationStep } from "./key-states.ts";
import { useCreateKey, useRevokeKey } from "./use-key-calls.ts";

interface RotationStepsProps {
  readonly old: ApiKey;
  readonly keys: readonly ApiKey[];
  readonly successor: ApiKey | undefined;
  readonly created: (secret: NewSecret) => void;
}

const ORDER: readonly RotationStep["kind"][] = ["create", "switch", "wait", "revoke", "done"];

/** The steps of a rotation: which is done, and what the next one needs. */
export function RotationSteps({ old, keys, successor, created }: RotationStepsProps) {
  const now = useNow();
  const revoke = useRevokeKey();
  const step = rotationStep(old, successor, now);
  const isBefore = (kind: RotationStep["kind"]) => ORDER.indexOf(step.kind) < ORDER.indexOf(kind);
  return (
    <ol className={styles.steps}>
      <Step title="Create the successor" isDone={!isBefore("switch")} isCurrent={step.kind === "create"}>
        {successor !== undefined && (
          <p>
            Key <code>{successor.id}</code>, created <Time at={successor.createdAt} />.
          </p>
        )}
        {step.kind === "create" && (
          <CreateSuccessor old={old} candidates={findSuccessors(old, keys, now)} created={created} />
        )}
      </Step>
      <Step title="Give it to the callers" isDone={!isBefore("wait")} isCurrent={step.kind === "switch"}>
        <p>
          {successor === undefined ? (
            "The secret is shown once, after step 1. Both keys are valid until the old one is revoked."
          ) : (
            <>
              The successor's last use: <LastUse at={successor.lastUsedAt} />.
            </>
          )}
        </p>
      </Step>
      <Step
        title="Wait until the old key is no longer used"
        isDone={!isBefore("revoke")}
        isCurrent={step.kind === "wait"}
      >
        <p>
          The old key's last use: <LastUse at={old.lastUsedAt} />. {waitWords(step)}
        </p>
      </Step>
      <Step title="Revoke the old key" isDone={step.kind === "done"} isCurrent={step.kind === "revoke"}>
        {step.kind === "done" ? (
          <p>
            Revoked <Time at={old.revokedAt} />.
          </p>
        ) : (
          <>
            {step.kind !== "revoke" && (
              <p>
                Possible at any time, such as when the key was stolen; callers that still use it are refused.
              </p>
            )}
            <DialogButton
              action={`Revoke ${old.id}`}
              look={step.kind === "revoke" ? "danger" : "rare"}
              dialog={(close) => <RevokeKeyDialog apiKey={old} revoke={revoke} close={close} />}
            />
          </>
        )}
      </Step>
    </ol>
  );
}

function Step(props: { title: string; isDone: boolean; isCurrent: boolean; children: ReactNode }) {
  const { title, isDone, isCurrent, children } = props;
  return (
    <li className={styles.step} aria-current={isCurrent ? "step" : undefined}>
      <h3>
        {title} <StateMark {...(isDone ? DONE : isCurrent ? CURRENT : LATER)} />
      </h3>
      {children}
    </li>
  );
}

const DONE: Mark = { tone: "good", word: "Done" };
const CURRENT: Mark = { tone: "busy", word: "Now" };
const LATER: Mark = { tone: "quiet", word: "Later" };

type CreateSuccessorProps = Pick<RotationStepsProps, "old" | "created"> & { candidates: readonly ApiKey[] };

function CreateSuccessor({ old, candidates, created }: CreateSuccessorProps) {
  const createKey = useCreateKey();
  const [expiry, setExpiry] = useState<Expiry>(old.expiresAt === undefined ? "never" : "90");
  const { error, waiting, run } = useAction();
  const { role, label, namespaces } = old;

  async function act(): Promise<void> {
    created(await createKey({ role, label, namespaces, ...expiryField(expiry) }));
  }

  return (
    <>
      <p>It gets the same role, purpose and namespaces.</p>
      <div className={common.fields}>
        <ExpiryField value={expiry} change={setExpiry} />
        <button type="button" disabled={waiting} onClick={() => void run(act)}>
          {waiting ? "Working" : "Create the successor"}
        </button>
      </div>
      <ActionError error={error} />
      {candidates.length > 0 && (
        <p>
          Or continue with a newer key of the same scope:{" "}
          {candidates.slice(0, 5).map(({ id }) => (
            <Link
              key={id}
              className={`${common.mono} ${styles.candidate}`}
              href={hereWith(`?${new URLSearchParams({ rotate: old.id, successor: id })}`)}
            >
              {id}
            </Link>
          ))}
        </p>
      )}
    </>
  );
}

function waitWords(step: RotationStep): string {
  switch (step.kind) {
    case "create":
    case "switch":
    case "done":
      return "";
    case "wait":
      return "The hour of the last use and one more have to pass. This screen refreshes automatically.";
    case "revoke":
      return step.quietMs === undefined
        ? "It was never used."
        : `Not used for ${formatDuration(step.quietMs)}. A caller that runs once a day shows only after a day.`;
    default:
      return step satisfies never;
  }
}

/** The API lists keys, newest first, and reads none by its id. */
const MAX_KEYS = 1_000;
const REFRESH_MS = 30_000;

type RotationProps = Pick<RotationStepsProps, "created"> & Readonly<Record<"id" | "successorId", string>>;

/**
 * The rotation of a key in steps. The address names both keys, so a rotation that takes days continues from a bookmark, and the
 * state of both keys says how far it is. `successorId`: empty if none was chosen.
 */
export function Rotation({ id, successorId, created }: RotationProps) {
  const list = useQuery(
    TenantAdminService.method.listApiKeys,
    { pageSize: MAX_KEYS },
    { refetchInterval: useLiveInterval(REFRESH_MS) },
  );
  const { data } = list;
  const old = data?.apiKeys.find((key) => key.id === id);
  return (
    <>
      <p>
        <Link href={hereWith("")}>All keys</Link>
      </p>
      {data === undefined && <Unanswered query={list} rows={8} />}
      {data !== undefined && old === undefined && (
        <Empty command="onceward keys list">
          The key {id} is not among the newest {MAX_KEYS} of the tenant.
        </Empty>
      )}
      {data !== undefined && old !== undefined && (
        <>
          <h2>Rotate key {id}</h2>
          <p className={common.quiet}>
            {old.label !== "" && <UserText>{old.label}</UserText>}
            {old.label !== "" && ", "}
            {roleWords(old.role)}, {old.namespaces.join(", ") || "all namespaces"}
          </p>
          <RotationSteps
            old={old}
            keys={data.apiKeys}
            successor={data.apiKeys.find((key) => key.id === successorId && key.id !== id)}
            created={created}
          />
        </>
      )}
    </>
  );
}
