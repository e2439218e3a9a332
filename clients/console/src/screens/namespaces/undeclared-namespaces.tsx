import { useQuery } from "@connectrpc/connect-query";
import { TenantAdminService } from "@onceward/gen/onceward/v1/tenant_admin_pb.ts";
import { Link } from "wouter";
import { DataTable } from "../../parts/data-table.tsx";
import { Empty, ErrorState, Loading } from "../../parts/list-states.tsx";
import { Pager } from "../../parts/pager.tsx";
import { usePageToken } from "../../parts/pages.ts";

const PAGE_SIZE = 50;

/** The namespaces that have records and no policy of their own, by name. */
export function UndeclaredNamespaces() {
  const { token } = usePageToken();
  const { data, error, refetch } = useQuery(TenantAdminService.method.listUndeclaredNamespaces, {
    pageSize: PAGE_SIZE,
    pageToken: token,
  });
  if (data === undefined) {
    return error === null ? <Loading rows={8} /> : <ErrorState error={error} retry={refetch} />;
  }
  if (data.names.length === 0) {
    return (
      <Empty command="onceward namespaces undeclared">Every namespace that has records is declared.</Empty>
    );
  }
  return (
    <>
      <DataTable
        caption="They have records and follow the tenant's policy. A misspelt namespace shows here."
        columns={[
          { heading: "Namespace", cell: (name) => name },
          {
            heading: "Records",
            cell: (name) => <Link href={`/records?namespace=${name}`}>Show records</Link>,
          },
          { heading: "Policy", cell: (name) => <Link href={`/namespaces/${name}`}>Declare</Link> },
        ]}
        rows={data.names}
        rowKey={(name) => name}
        href={(name) => `/namespaces/${name}`}
      />
      <Pager nextPageToken={data.nextPageToken} />
    </>
  );
}
