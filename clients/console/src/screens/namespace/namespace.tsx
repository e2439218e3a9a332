import { useQuery } from "@connectrpc/connect-query";
import { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import { useState } from "react";
import { Link, useParams } from "wouter";
import { Empty, ErrorState, Loading } from "../../parts/list-states.tsx";
import { StateMark } from "../../parts/state-mark.tsx";
import { Time } from "../../parts/time.tsx";
import { FIELD_NAMES } from "../../policy/policy-fields.ts";
import { Screen } from "../../shell/screen.tsx";
import common from "../../styles/common.module.css";
import { isNamespaceName } from "../namespaces/namespace-name.ts";
import { DeleteNamespace } from "./delete-namespace.tsx";
import { NamespacePolicy } from "./namespace-policy.tsx";
import { useNamespace } from "./use-namespace.ts";

/** The screen of one namespace: its policy beside the tenant's. Declares it if it is not. */
export default function NamespaceScreen() {
  const { name = "" } = useParams<{ name: string }>();
  if (!isNamespaceName(name)) {
    return (
      <Screen title="Namespace">
        <Empty command="onceward namespaces list">This is not the name of a namespace: {name}</Empty>
      </Screen>
    );
  }
  // A new name is a new form.
  return <NamespaceOf key={name} name={name} />;
}

function NamespaceOf({ name }: { readonly name: string }) {
  const [isDeleting, setDeleting] = useState(false);
  const found = useNamespace(name);
  const tenant = useQuery(TenantAdminService.method.getTenant);
  const failed = [found, tenant].filter(({ data, error }) => data === undefined && error !== null);
  const namespace = found.data?.namespace;
  const isLoaded = found.data !== undefined && tenant.data?.tenant !== undefined;
  return (
    <Screen title={name} lead="Whether keys are remembered for long enough, and the policy of the namespace.">
      {failed[0] !== undefined && (
        <ErrorState error={failed[0].error} retry={() => Promise.all(failed.map((each) => each.refetch()))} />
      )}
      {failed.length === 0 && !isLoaded && <Loading rows={FIELD_NAMES.length * 2} />}
      {found.data !== undefined && tenant.data?.tenant !== undefined && (
        <>
          <div className={common.links}>
            {namespace === undefined ? (
              <span>
                <StateMark tone="attention" word="Not declared" />: it follows the tenant's policy.
              </span>
            ) : (
              <span>
                Declared <Time at={namespace.createdAt} />
              </span>
            )}
            <Link href={`/records?namespace=${name}`}>Records</Link>
            <Link href={`/key-quality?namespace=${name}`}>Key quality</Link>
            <Link href={`/audit?${new URLSearchParams({ target: `namespace ${name}` })}`}>Audit</Link>
          </div>
          <NamespacePolicy name={name} namespace={namespace} tenant={tenant.data.tenant} />
          {namespace !== undefined && (
            <section>
              <h2>Delete</h2>
              <p>Removes the own values, and the namespace from the list of declared ones.</p>
              <button type="button" data-look="danger" onClick={() => setDeleting(true)}>
                Delete the policy
              </button>
            </section>
          )}
        </>
      )}
      {isDeleting && namespace !== undefined && (
        <DeleteNamespace namespace={namespace} close={() => setDeleting(false)} />
      )}
    </Screen>
  );
}
