import { useQuery } from "@connectrpc/connect-query";
import { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import { DataTable } from "../../parts/data-table.tsx";
import { Empty, ErrorState, Loading } from "../../parts/list-states.tsx";
import { Pager } from "../../parts/pager.tsx";
import { usePageToken } from "../../parts/pages.ts";
import { Time } from "../../parts/time.tsx";
import { FIELD_NAMES, fieldWords, POLICY_FIELDS, policyText } from "../../policy/policy-fields.ts";

const PAGE_SIZE = 50;

/** The namespaces with a policy of their own, by name. */
export function DeclaredNamespaces() {
  const { token } = usePageToken();
  const { data, error, refetch } = useQuery(TenantAdminService.method.listNamespaces, {
    pageSize: PAGE_SIZE,
    pageToken: token,
  });
  if (data === undefined) {
    return error === null ? <Loading rows={8} /> : <ErrorState error={error} retry={refetch} />;
  }
  if (data.namespaces.length === 0) {
    return (
      <Empty command="onceward namespaces set NAME --key-retention 72h">
        No namespace is declared: all follow the tenant's policy. Open one by its name to declare it.
      </Empty>
    );
  }
  const rows = data.namespaces.map((namespace) => {
    const own = policyText(namespace.policy);
    const set = FIELD_NAMES.filter((field) => own[field] !== "");
    return { namespace, set, inForce: policyText(namespace.effectivePolicy) };
  });
  return (
    <>
      <DataTable
        caption="Declared namespaces, by name; the values are the effective ones"
        columns={[
          { heading: "Namespace", cell: ({ namespace }) => namespace.name },
          {
            heading: "Key retention",
            cell: ({ inForce }) => fieldWords("keyRetention", inForce.keyRetention),
          },
          {
            heading: "Result retention",
            cell: ({ inForce }) => fieldWords("resultRetention", inForce.resultRetention),
          },
          {
            heading: "When a lease expires",
            cell: ({ inForce }) => fieldWords("onLeaseExpiry", inForce.onLeaseExpiry),
          },
          {
            heading: "Fingerprint",
            cell: ({ inForce }) => fieldWords("requireFingerprint", inForce.requireFingerprint),
          },
          {
            heading: "Overrides",
            cell: ({ set }) =>
              set.map((field) => POLICY_FIELDS[field].label.toLowerCase()).join(", ") || "nothing",
          },
          { heading: "Declared", cell: ({ namespace }) => <Time at={namespace.createdAt} form="absolute" /> },
        ]}
        rows={rows}
        rowKey={({ namespace }) => namespace.name}
        href={({ namespace }) => `/namespaces/${namespace.name}`}
      />
      <Pager nextPageToken={data.nextPageToken} />
    </>
  );
}
