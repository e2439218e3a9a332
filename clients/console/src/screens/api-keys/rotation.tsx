import { useQuery } from "@connectrpc/connect-query";
import { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import type { ApiKey } from "@onceward/gen/onceward/v1/tenant_pb.ts";
import { Link } from "wouter";
import { roleWords } from "../../parts/api-key/key-state.ts";
import type { NewSecret } from "../../parts/api-key/secret-panel.tsx";
import { Empty, Unanswered } from "../../parts/list-states.tsx";
import { hereWith } from "../../parts/pages.ts";
import { UserText } from "../../parts/user-text.tsx";
import { useLiveInterval } from "../../shell/live.tsx";
import common from "../../styles/common.module.css";
import { RotationSteps } from "./rotation-steps.tsx";

/** The API lists keys, newest first, and reads none by its id. */
const MAX_KEYS = 1_000;
const REFRESH_MS = 30_000;

interface RotationProps {
  readonly id: string;
  /** Of the address; empty: none was chosen. */
  readonly successorId: string;
  readonly created: (secret: NewSecret) => void;
}

/**
 * The rotation of a key in steps. The address names both keys, so a rotation that takes days continues from a bookmark, and the
 * state of both keys says how far it is.
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
            <Scope apiKey={old} />
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

function Scope({ apiKey: { role, label, namespaces } }: { readonly apiKey: ApiKey }) {
  return (
    <>
      {label !== "" && (
        <>
          <UserText>{label}</UserText>,{" "}
        </>
      )}
      {roleWords(role)}, {namespaces.length === 0 ? "all namespaces" : namespaces.join(", ")}
    </>
  );
}
