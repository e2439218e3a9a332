import { useState } from "react";
import { Link } from "wouter";
import { type NewSecret, SecretPanel } from "../../parts/api-key/secret-panel.tsx";
import { useFilters } from "../../parts/filter-bar.tsx";
import { hereWith } from "../../parts/pages.ts";
import { Screen } from "../../shell/screen.tsx";
import common from "../../styles/common.module.css";
import { CreateTenant } from "./create-tenant.tsx";
import { CreateOperatorKey, OperatorKeys } from "./operator-keys.tsx";
import { TenantList } from "./tenant-list.tsx";

/** The parameter of the address that chooses the list. */
const KEYS = "keys";

/** The screen "Tenants": the tenants with their use, and the operators' own keys. */
export default function Tenants() {
  const { list } = useFilters(["list"]);
  const isKeys = list === KEYS;
  const [isCreating, setCreating] = useState(false);
  // In this component's state alone: no cache and no address has a secret.
  const [secret, setSecret] = useState<NewSecret>();
  const close = () => setCreating(false);
  return (
    <Screen
      title="Tenants"
      lead="Who uses the service, and how much of what is allowed."
      actions={
        <button type="button" onClick={() => setCreating(true)}>
          {isKeys ? "Create an operator's key" : "Create a tenant"}
        </button>
      }
    >
      {secret !== undefined && <SecretPanel secret={secret} hide={() => setSecret(undefined)} />}
      <nav aria-label="Lists" className={common.links}>
        <Link href={hereWith("")} aria-current={isKeys ? undefined : "page"}>
          Tenants
        </Link>
        <Link href={hereWith(`?list=${KEYS}`)} aria-current={isKeys ? "page" : undefined}>
          Operators' keys
        </Link>
      </nav>
      {isKeys ? <OperatorKeys /> : <TenantList />}
      {isCreating && isKeys && <CreateOperatorKey created={setSecret} close={close} />}
      {isCreating && !isKeys && <CreateTenant created={setSecret} close={close} />}
    </Screen>
  );
}
